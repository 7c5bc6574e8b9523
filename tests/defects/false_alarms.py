"""A healthy server is never accused: seeded runs of the simulator as many versions of vLLM.

    python -m tests.defects.false_alarms --runs 100

Each run boots the healthy simulator as one version, with one seed, and judges it by every check.
Prints every MUST check that fails; the exit status says whether there was one.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm import facts
from pytest_vllm.decide.verdict import Level, Verdict
from pytest_vllm.launch.protocol import BootError
from tests.defects.judging import judge_all
from tests.defects.matrix import suites
from tests.defects.recording import profile_for, record
from tests.defects.room import end_with_parent, own_room, room

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OLDEST = "0.10.0"
#: Healthy servers at once: more would be slow for lack of processor time, and be asked why.
WORKERS = 3


@dataclass(frozen=True)
class Alarm:
    """A run of a healthy server, and what it was accused of.

    Args:
        version: the version that the simulator was.
        seed: its seed.
        failed: MUST checks that failed, with their reasons.
        undecided: MUST checks that could not be decided.
        decided: how many checks were.
    """

    version: str
    seed: int
    failed: tuple[str, ...]
    undecided: tuple[str, ...]
    decided: int


def versions() -> list[str]:
    """Every version of the facts from the oldest on."""
    known = list(facts.versions())
    return known[known.index(OLDEST) :]


def sample(runs: int) -> list[tuple[str, int]]:
    """(version, seed) of so many runs: versions in turn, evenly spread, every seed another."""
    known = versions()
    spread = min(runs, len(known))
    return [(known[index % spread * len(known) // spread], index) for index in range(runs)]


def run(version_and_seed: tuple[str, int]) -> Alarm:
    """Boot, record and judge one healthy server."""
    version, seed = version_and_seed
    checks, items = suites()
    profile = profile_for()
    server = profile.server.model_copy(
        update={"version": version, "args": {**profile.server.args, "seed": seed}}
    )
    expect = profile.expect.model_copy(update={"version": None, "capabilities": []})
    profile = profile.model_copy(update={"server": server, "expect": expect})
    with room(f"healthy-{version}") as folder:
        view = record(folder, profile, items)
    if isinstance(view, BootError):
        return Alarm(version, seed, (f"boot: {view.what}",), (), 0)
    results = [row for row in judge_all(checks, view) if row.level is Level.MUST]
    named = {
        verdict: tuple(f"{row.check}: {row.reason}" for row in results if row.verdict is verdict)
        for verdict in (Verdict.FAIL, Verdict.UNDECIDED)
    }
    passed = sum(1 for row in results if row.verdict is Verdict.PASS)
    return Alarm(version, seed, named[Verdict.FAIL], named[Verdict.UNDECIDED], passed)


def run_all(runs: int, workers: int = WORKERS, say: Callable[[Alarm], None] = lambda _: None) -> list[Alarm]:
    """So many runs, over several processes; each is told as it comes."""
    suites()  # before the processes are forked, so that they share it
    alarms = []
    with own_room(), ProcessPoolExecutor(workers, initializer=end_with_parent) as pool:
        try:
            for alarm in pool.map(run, sample(runs)):
                alarms.append(alarm)
                say(alarm)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return alarms


def main(argv: Sequence[str] | None = None) -> int:
    """Run and print; the exit status says whether a healthy server was accused."""
    parser = argparse.ArgumentParser(prog="python -m tests.defects.false_alarms", description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--workers", type=int, default=WORKERS)
    options = parser.parse_args(argv)
    started = time.monotonic()
    alarms = run_all(options.runs, options.workers, _say)
    accused = sum(1 for one in alarms if one.failed)
    shown = {one.version for one in alarms}
    print(
        f"{len(alarms)} healthy runs as {len(shown)} versions (simulated), {accused} accused; "
        f"{min(one.decided for one in alarms)} MUST checks or more held in each; "
        f"{time.monotonic() - started:.0f} s"
    )
    return 1 if accused else 0


def _say(alarm: Alarm) -> None:
    print(f"{alarm.version} seed {alarm.seed}: {alarm.decided} MUST checks held", flush=True)
    for word, rows in (("FALSE ALARM", alarm.failed), ("undecided", alarm.undecided)):
        for row in rows:
            print(f"{word}  {alarm.version} seed {alarm.seed}  {row[:200]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
