"""Two simulators measured in turns: how often a slower one is found, and how often an equal one is accused.

    python -m tests.bench.turns --pairs 20 --slower 0.1       found of 20, and the seconds that each took
    python -m tests.bench.turns --pairs 40 --slower 0         A/A: every change is a false one

Both run as processes of their own and answer one token every `--step` seconds; `--by speed` slows the clock
instead of the step. Each pair of simulators is new, and which of the two is slower takes turns.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pytest_vllm.declare.exchanges import CASE_SETS
from pytest_vllm.declare.measurements import planned
from pytest_vllm.face.collection import exchange_modules
from pytest_vllm.launch.ports import LOOPBACK, free_port
from pytest_vllm.profile.model import Profile, ServerPart
from pytest_vllm.report.compare.figures import paired
from pytest_vllm.report.progress import Progress
from pytest_vllm.run.interleaved import interleaved
from pytest_vllm.run.probe import probe
from pytest_vllm.run.state import ServerState
from pytest_vllm.wire.ask import ask
from pytest_vllm.wire.failure import TransportError
from pytest_vllm.wire.policy import route_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_vllm.declare.measurements import PlannedMeasurement

#: Loads, by the names of their fixtures; `throughput_streams` is the case of the second one.
LOADS = ("throughput_decode", "throughput_aggregate", "throughput_prefill")
SECONDS_TO_START = 30.0


class _Silent:
    """A terminal that nobody reads."""

    hasmarkup = False

    def __getattr__(self, _name: str) -> Any:
        return lambda *_args, **_more: None


@contextmanager
def simulator(arguments: Sequence[str]) -> Iterator[str]:
    """A simulator as a process of its own: its URL."""
    port = free_port()
    url = f"http://{LOOPBACK}:{port}"
    command = [sys.executable, "-m", "pytest_vllm.sim", "serve", "sim-model", "--port", str(port), *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _await(url)
            yield url
        finally:
            process.terminate()


def _await(url: str) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            if ask(route_to(url), "/health", timeout=2.0).status == 200:
                return
        except (TransportError, OSError):
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def plan() -> list[PlannedMeasurement]:
    """The loads that are measured."""
    exchange_modules()
    streams = next(case for case in CASE_SETS["throughput_streams"] if case.id == "8")
    return list(planned(LOADS, {"throughput_streams": streams}).values())


def state_of(name: str, url: str, folder: Path) -> ServerState:
    """An attached simulator as the gate knows it, with the batch that it was started with."""
    profile = Profile(name=name, server=ServerPart(launcher="attach", url=url, args={"max-num-seqs": 8}))
    return ServerState(profile, asyncio.run(probe(url, profile)), folder / name)


@dataclass(frozen=True)
class Outcome:
    """What one comparison found: figures that changed, with the ratio of the others' interval."""

    changed: list[str]
    rows: list[dict[str, Any]]
    seconds: float


def compared(older: Sequence[str], newer: Sequence[str], seconds: float) -> Outcome:
    """Compare two simulators that are started with these arguments."""
    common = ["--max-num-seqs", "8", "--max-model-len", "4096"]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        urls = [stack.enter_context(simulator([*common, *arguments])) for arguments in (older, newer)]
        one, other = (state_of(name, url, folder) for name, url in zip(("a", "b"), urls, strict=True))
        found = interleaved(one, other, plan(), Progress(_Silent(), tty=False), folder, seconds=seconds)
    rows = paired(found.loads)
    return Outcome([f"{row['figure']} {row['change']}" for row in rows if row["change"]], rows, found.seconds)


def _shown(row: dict[str, Any]) -> str:
    ratio = row["ratio"]
    ends = f"{ratio['low']:.3f}-{ratio['high']:.3f}"
    return f"{row['figure']} {ratio['value']:.3f} ({ends}, {row['before']['n']})"


def main() -> int:
    """Print one line for each comparison, and the counts."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    given.add_argument("--pairs", type=int, default=20)
    given.add_argument("--slower", type=float, default=0.1)
    given.add_argument("--step", type=float, default=0.01)
    given.add_argument("--by", choices=("step", "speed"), default="step")
    given.add_argument("--seconds", type=float, default=80.0)
    asked = given.parse_args()
    usual = ["--sim-step", str(asked.step)]
    slow = ["--sim-step", str(asked.step / (1 - asked.slower))]
    if asked.by == "speed":
        usual, slow = [*usual, "--sim-speed", "1"], [*usual, "--sim-speed", str(1 - asked.slower)]
    right = 0
    for number in range(asked.pairs):
        turned = number % 2 == 1
        found = compared(slow if turned else usual, usual if turned else slow, asked.seconds)
        word = "faster" if turned else "slower"
        told = any(word in one for one in found.changed)
        wrong = [one for one in found.changed if word not in one] if asked.slower else found.changed
        right += (told and not wrong) if asked.slower else not found.changed
        ratios = "; ".join(_shown(row) for row in found.rows if row["ratio"])
        print(f"{number + 1:3} {found.seconds:5.1f} s  {', '.join(found.changed) or '-'}  [{ratios}]")
        sys.stdout.flush()
    print(f"{right} of {asked.pairs} right")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
