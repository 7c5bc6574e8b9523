"""The clean restart: stop the server, see that nothing of it and nobody else holds memory, start it again.

`docker restart` skips the look in between, and the server comes up beside whatever took its memory meanwhile.
Runs in the controlling process, once everything else was recorded; what it found is a file of the run folder
that checks judge.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.launch.access import access_of
from pytest_vllm.launch.protocol import BootError
from pytest_vllm.launch.wait import wait_ready
from pytest_vllm.preflight.evict import make_room, shares_memory
from pytest_vllm.preflight.inspect import free_memory
from pytest_vllm.profile.hardware import load_hardware

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.launch.boot import Progress
    from pytest_vllm.launch.protocol import Restartable
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.run.state import ServerState

FILE = "restart.json"
#: Seconds that a driver may take to give memory back once the processes are gone.
GIVES_BACK = 10.0
GIB = 1024**3


@dataclass(frozen=True)
class Restart:
    """What a restart showed.

    Args:
        stop_seconds: from the signal until the server's main process had ended.
        killed: whether it did not end by itself and had to be killed.
        left: processes of it that outlived its main process, each as `name (pid)`; they were killed.
        serving_free: free bytes of accelerator memory while it served; None where nobody can tell.
        stopped_free: the same once it had ended, or had had ten seconds to give its memory back.
        total: bytes of accelerator memory; None where nobody can tell.
        tenants: other servers of models that held memory between stop and start.
        start_seconds: from the second start until it was ready; None when it did not get there.
        error: why it did not start again; empty when it did.
        evidence: lines that show it.
    """

    stop_seconds: float
    killed: bool = False
    left: tuple[str, ...] = ()
    serving_free: int | None = None
    stopped_free: int | None = None
    total: int | None = None
    tenants: tuple[str, ...] = ()
    start_seconds: float | None = None
    error: str = ""
    evidence: tuple[str, ...] = ()

    @property
    def given_back(self) -> float | None:
        """GiB of accelerator memory that the stop gave back; None where nobody can tell."""
        if self.serving_free is None or self.stopped_free is None:
            return None
        return (self.stopped_free - self.serving_free) / GIB

    def write(self, folder: Path) -> None:
        """Keep it in a server's folder."""
        (folder / FILE).write_text(json.dumps(asdict(self), indent=1), "utf-8")


def read_restart(folder: Path) -> Restart | None:
    """The restart of a server's folder; None when it was not restarted in that run."""
    path = folder / FILE
    if not path.is_file():
        return None
    values = json.loads(path.read_text("utf-8"))
    lists = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
    return Restart(**{**values, **lists})


def restart(
    handle: Restartable,
    state: ServerState,
    *,
    evict: bool,
    enter: Callable[[Restartable], Restartable],
    say: Callable[[str], None],
    on_progress: Callable[[Progress], None],
) -> tuple[Restart, Restartable | None]:
    """Stop and start a server. Returns what was seen, and the new handle; None when it did not start.

    Args:
        handle: the server that runs.
        state: its profile and folder.
        evict: whether tenants may be asked to let go of their memory.
        enter: makes sure that the new handle is stopped at the end, whatever happens.
        say: tells the person.
        on_progress: how far the second start is.
    """
    profile = state.profile
    serving = _memory(handle, profile)
    halt = handle.halt()
    stopped = _settled(handle, profile, serving)
    seen = Restart(halt.seconds, halt.killed, halt.left)
    if serving and stopped:
        seen = replace(seen, serving_free=serving[0], stopped_free=stopped[0], total=stopped[1])
    if shares_memory(profile):
        seen = _look_around(seen, evict=evict, say=say)
    began = time.monotonic()
    try:
        fresh = enter(handle.again())
        wait_ready(fresh, profile.boot, on_progress, access=access_of(profile))
    except BootError as error:
        why = f"{error.what}; {error.means}" if error.means else error.what
        return replace(seen, error=why, evidence=error.evidence), None
    return replace(seen, start_seconds=round(time.monotonic() - began, 3)), fresh


def _look_around(seen: Restart, *, evict: bool, say: Callable[[str], None]) -> Restart:
    tenants = make_room(say, evict=evict)
    return replace(seen, tenants=tuple(map(str, tenants)))


def _memory(handle: Restartable, profile: Profile) -> tuple[int, int | None] | None:
    """Free bytes and all bytes of the accelerator."""
    own = handle.free_memory()
    if own is not None:
        return own, None
    if not shares_memory(profile):
        return None
    known = load_hardware(profile.hardware, Path.cwd()) if profile.hardware else None
    return free_memory(unified=bool(known and known.unified))


def _settled(
    handle: Restartable, profile: Profile, serving: tuple[int, int | None] | None
) -> tuple[int, int | None] | None:
    """The memory once it no longer grows, or the time is over."""
    if serving is None:
        return None
    until, last = time.monotonic() + GIVES_BACK, serving
    while (now := _memory(handle, profile)) is not None and time.monotonic() < until:
        if now[0] <= last[0] and now[0] > serving[0]:
            return now
        last = now
        time.sleep(0.2)
    return now
