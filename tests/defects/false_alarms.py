"""A healthy server is never accused: servers drawn at random, each judged twice.

    python -m tests.defects.false_alarms --runs 12 --from 0
    python -m tests.defects.false_alarms --alone --version 0.32.0     every option by itself
    python -m tests.defects.false_alarms --runs 1 --from 17           draw 17 once more

Each run boots a healthy simulator (false_alarms_drawing.py says of which kinds) and judges it by every check:
first as the server that the gate started, then as one that runs already and of which nothing is known.
Loads are not measured: what they say depends on the machine as well.
Prints every MUST check that fails or is undecided; the exit status says whether there was one.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.decide.verdict import Level, Verdict
from pytest_vllm.launch.protocol import BootError
from pytest_vllm.profile.load import load
from pytest_vllm.profile.model import Profile, RecordPart, Secret, ServerPart
from tests.defects.false_alarms_drawing import Draw, draw, each_alone
from tests.defects.judging import ROOT, judge_all
from tests.defects.matrix import recorded_only, suites
from tests.defects.middlemen import MIDDLEMEN, between
from tests.defects.recording import opened
from tests.defects.room import own_pool, room

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

#: Healthy servers at once: more would be slow for lack of processor time, and be asked why.
WORKERS = 2
#: Where the drawn key is kept: not where a server would take it from.
KEY, SECRET = "PYTEST_VLLM_DRAWN_KEY", "sk-drawn-0001"


@dataclass(frozen=True)
class Alarm:
    """A healthy server, and what it was accused of.

    Args:
        draw: what it was.
        failed: MUST checks that failed, with their reasons; which of the two runs in front.
        undecided: MUST checks that could not be decided.
        decided: how many held, in the run in which fewest did.
        seconds: both runs.
    """

    draw: Draw
    failed: tuple[str, ...]
    undecided: tuple[str, ...]
    decided: int = 0
    seconds: float = 0.0


def profile_of(drawn: Draw) -> Profile:
    """The profile that starts it; it expects nothing, as what there is follows from the draw."""
    profile = load("sim", ROOT)
    args = {**profile.server.args, **drawn.args, "seed": drawn.seed}
    given = {name: value for name, value in args.items() if value is not None}
    changes: dict[str, object] = {"version": drawn.version, "args": given, "model": drawn.model}
    changes["env"] = {**profile.server.env, **drawn.env}
    if drawn.keyed:
        os.environ[KEY] = SECRET
        changes["api_key"] = Secret(from_env=KEY)
    expect = profile.expect.model_copy(update={"version": None, "capabilities": [], "block_size": None})
    server = profile.server.model_copy(update=changes)
    # the simulator takes seconds for a long context: its own profile has less patience than a user's
    usual = RecordPart()
    patience = profile.record.model_copy(update={"silence": usual.silence, "timeout": usual.timeout})
    changed = {"server": server, "expect": expect, "model": drawn.model, "record": patience}
    return profile.model_copy(update=changed)


def attached(profile: Profile, url: str) -> Profile:
    """The profile of a server that runs already, as `--vllm-url` alone makes it."""
    server = ServerPart(launcher="attach", url=url, api_key=profile.server.api_key)
    return Profile(name="attached", server=server, measure=profile.measure, record=profile.record)


def run(drawn: Draw) -> Alarm:
    """Boot one healthy server, record and judge it twice."""
    started = time.monotonic()
    checks = recorded_only()
    items = [check.item for check in checks]
    profile = profile_of(drawn)
    with room(f"healthy-{drawn.version}") as folder:
        try:
            with opened(folder / "first", profile, items) as first, ExitStack() as stack:
                url = _in_front(stack, folder, drawn, profile, first.server.url)
                second = stack.enter_context(opened(folder / "second", attached(profile, url), items))
        except BootError as error:
            return Alarm(drawn, (f"boot: {error.what} {' '.join(error.evidence)}",), ())
        results = [("1st", judge_all(checks, first)), ("2nd", judge_all(checks, second))]
    found = {
        verdict: tuple(
            f"{name} {row.check}: {row.reason}"
            for name, rows in results
            for row in rows
            if row.level is Level.MUST and row.verdict is verdict
        )
        for verdict in (Verdict.FAIL, Verdict.UNDECIDED)
    }
    held = min(sum(row.verdict is Verdict.PASS for row in rows) for _, rows in results)
    return Alarm(drawn, found[Verdict.FAIL], found[Verdict.UNDECIDED], held, time.monotonic() - started)


def _in_front(stack: ExitStack, folder: Path, drawn: Draw, profile: Profile, url: str) -> str:
    """Where clients find the server: itself, or what stands in front of it, with others like it behind."""
    if not drawn.between:
        return url
    others = range(1, MIDDLEMEN[drawn.between].replicas)
    urls = []
    for one in others:
        env = {**profile.server.env, "VLLM_SIM_REPLICA": f"-{one}"}
        server = profile.server.model_copy(update={"env": env})
        beside = profile.model_copy(update={"server": server})
        urls.append(stack.enter_context(opened(folder / f"beside-{one}", beside, ())).server.url)
    return stack.enter_context(between(drawn.between, [url, *urls]))


def run_all(
    draws: Iterable[Draw],
    workers: int = WORKERS,
    say: Callable[[Alarm], None] = lambda _: None,
) -> list[Alarm]:
    """These servers, over several processes; each is printed as it comes."""
    suites()  # before the processes are forked, so that they share it
    alarms = []
    with own_pool(workers) as pool:
        for alarm in pool.map(run, draws):
            alarms.append(alarm)
            say(alarm)
    return alarms


def main(argv: Sequence[str] | None = None) -> int:
    """Run and print; the exit status says whether a healthy server was accused or left undecided."""
    parser = argparse.ArgumentParser(prog="python -m tests.defects.false_alarms", description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="SEED", help="seed of the first")
    parser.add_argument("--version", default="", help="draw this version only")
    parser.add_argument("--alone", nargs="*", metavar="DIMENSION", help="every option of these by itself")
    parser.add_argument("--workers", type=int, default=WORKERS)
    options = parser.parse_args(argv)
    started = time.monotonic()
    if options.alone is None:
        draws = [draw(seed, options.version) for seed in range(options.first, options.first + options.runs)]
    else:
        draws = list(each_alone(options.version or "0.32.0", *options.alone))
    alarms = run_all(draws, options.workers, _say)
    accused = sum(1 for one in alarms if one.failed)
    undecided = sum(1 for one in alarms if one.undecided)
    shown = len({one.draw.version for one in alarms})
    print(
        f"{len(alarms)} healthy servers of {shown} versions (simulated), each judged twice: "
        f"{accused} accused, {undecided} undecided; "
        f"{min(one.decided for one in alarms)} MUST checks or more held in each; "
        f"{time.monotonic() - started:.0f} s"
    )
    return 1 if accused or undecided else 0


def _say(alarm: Alarm) -> None:
    print(f"{alarm.decided} MUST checks held, {alarm.seconds:.0f} s  {alarm.draw}", flush=True)
    for word, rows in (("FALSE ALARM", alarm.failed), ("UNDECIDED", alarm.undecided)):
        for row in rows:
            print(f"  {word}  {row[:200]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
