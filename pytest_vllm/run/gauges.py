"""What a server takes while it is being tested, moment by moment: memory, KV cache, queue. `timeline.jsonl`.

A thread of the controlling process reads at a gentle pace, from before the start to the end. Reading
`/metrics` changes no counter of vLLM's. Where GPU and system share their memory the thread is also the guard
that stops the server before memory runs out: such a machine does not kill a process then, it hangs.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytest_vllm.preflight.inspect import free_memory
from pytest_vllm.profile.hardware import load_hardware
from pytest_vllm.wire.ask import ask
from pytest_vllm.wire.glance import glance
from pytest_vllm.wire.policy import route_to

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pytest_vllm.launch.protocol import Handle
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.wire.policy import Access, Route

FILE = "timeline.jsonl"
#: Launchers whose servers are ours to stop.
#: Seconds between two readings; on a simulator, whose runs are short, and in its soak tier.
INTERVAL, REHEARSED, SOAKED = 1.0, 0.5, 0.02
#: Shared memory that has to stay free: a share of all of it, and never less than this many bytes.
FLOOR, LEAST = 0.02, 2 * 1024**3
PATIENCE = 2.0
NAMES = {
    "vllm:kv_cache_usage_perc": "kv",
    "vllm:gpu_cache_usage_perc": "kv",
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:num_preemptions_total": "preemptions",
    "vllm:generation_tokens_total": "generated",
}


@dataclass(frozen=True)
class Reading:
    """One moment. What nobody can tell is None.

    Args:
        at: seconds since the first reading, of this machine's clock.
        free: free bytes of the accelerator; of the system where the accelerator shares its memory.
        total: all bytes of it.
        resident: bytes of main memory that the server's processes hold.
        kv: used share of the KV cache.
        running: requests in the batch.
        waiting: requests in the queue.
        preemptions: requests that were put back so far.
        generated: tokens that were generated so far.
        phase: what the run was doing; empty before the load of a soak and after it.
    """

    at: float
    free: int | None = None
    total: int | None = None
    resident: int | None = None
    kv: float | None = None
    running: float | None = None
    waiting: float | None = None
    preemptions: float | None = None
    generated: float | None = None
    phase: str = ""


def read_timeline(folder: Path) -> tuple[Reading, ...]:
    """The readings of a server's folder, in order; none where there is no file."""
    path = folder / FILE
    if not path.is_file():
        return ()
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.endswith("}")]
    return tuple(Reading(**row) for row in rows)


def of_metrics(text: str) -> dict[str, float]:
    """The gauges of a scrape; summed over engines, the KV cache's usage the highest."""
    found: dict[str, float] = {}
    for name, values in glance(text, NAMES).items():
        field = NAMES[name]
        found[field] = max(values) if field == "kv" else sum(values)
    return found


def memory_of(profile: Profile, *, unified: bool) -> Callable[[], tuple[int, int | None] | None]:
    """What reads the memory that the profile's server computes in, where it is this machine's.

    Args:
        profile: the server's.
        unified: whether CPU and accelerator share it.
    """
    here = profile.server.kind.starts_vllm
    cpu = profile.hardware == "cpu"
    if not here or (not cpu and profile.server.gpus is None and profile.server.launcher != "process"):
        return lambda: None
    return lambda: free_memory(unified=unified or cpu)


def floor_of(total: int) -> int:
    """Bytes of shared memory that have to stay free."""
    return max(LEAST, round(FLOOR * total))


def gauges_for(profile: Profile, folder: Path, rootdir: Path, *, tier: str = "gate") -> Gauges:
    """The gauges of a profile's server, guarding it where GPU and system share their memory."""
    hardware = load_hardware(profile.hardware, rootdir) if profile.hardware else None
    unified = hardware is not None and hardware.unified
    guarded = unified and hardware is not None and hardware.vendor != "cpu"
    simulated = profile.server.kind.simulated
    interval = (SOAKED if tier == "soak" else REHEARSED) if simulated else INTERVAL
    return Gauges(
        folder,
        memory_of(profile, unified=unified),
        interval=interval,
        guarded=guarded and profile.server.kind.starts_vllm,
    )


class Gauges:
    """Reads until closed.

    Args:
        folder: the server's folder; `timeline.jsonl` is written there.
        memory: free and all bytes of the accelerator, or of the system; None when nobody can tell.
        interval: seconds between two readings.
        guarded: whether too little free memory ends the server.
    """

    def __init__(
        self,
        folder: Path,
        memory: Callable[[], tuple[int, int | None] | None],
        *,
        interval: float = INTERVAL,
        guarded: bool = False,
    ) -> None:
        """Read once, before anything is started, then go on in a thread."""
        self._path, self._memory = folder / FILE, memory
        self._interval, self.guarded = interval, guarded
        self._began = time.monotonic()
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._resident: Callable[[], int | None] | None = None
        self._halt: Callable[[], None] | None = None
        self._route: Route | None = None
        self._key = ""
        self.tripped = self.phase = ""
        self._file = self._path.open("a", encoding="utf-8")
        self.read()
        self._thread = threading.Thread(target=self._go_on, name="pytest-vllm gauges", daemon=True)
        self._thread.start()

    def watch(self, handle: Handle) -> None:
        """A server was started: read what it holds itself, as far as its launcher can tell."""
        self._resident = getattr(handle, "resident", None)
        self._memory = getattr(handle, "memory", self._memory)
        self._halt = handle.stop

    def scrape(self, url: str, key: str | None, access: Access | None = None) -> None:
        """It is ready: read its `/metrics` too."""
        self._route, self._key = route_to(url, access), key or ""

    def read(self) -> Reading:
        """Read now and write it down."""
        with self._lock:
            found = self._memory() or (None, None)
            reading = Reading(
                round(time.monotonic() - self._began, 3),
                free=found[0],
                total=found[1],
                resident=self._resident() if self._resident else None,
                phase=self.phase,
                **self._metrics(),
            )
            if not self._file.closed:
                told = {name: value for name, value in asdict(reading).items() if value not in (None, "")}
                self._file.write(json.dumps(told) + "\n")
                self._file.flush()
        self._look(reading)
        return reading

    def close(self) -> None:
        """Read no more. Idempotent."""
        self._stop.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=PATIENCE * 3)
        with self._lock:
            self._file.close()

    def _go_on(self) -> None:
        while not self._stop.wait(self._interval):
            self.read()

    def _look(self, reading: Reading) -> None:
        """Stop the server when the memory that it shares with the whole machine runs out."""
        if not self.guarded or self.tripped or self._halt is None:
            return
        free, total = reading.free, reading.total
        if free is None or total is None or free >= floor_of(total):
            return
        gib = 1024**3
        self.tripped = (
            f"stopped here: {free / gib:.1f} of {total / gib:.0f} GiB that GPU and system share were free, "
            f"{floor_of(total) / gib:.1f} GiB have to be, or the machine hangs"
        )
        self._halt()

    def _metrics(self) -> Mapping[str, Any]:
        if self._route is None:
            return {}
        try:
            answer = ask(self._route, "/metrics", timeout=PATIENCE, key=self._key)
        except OSError:
            return {}
        return of_metrics(answer.text) if answer.status == 200 else {}
