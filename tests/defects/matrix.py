"""Suites x defects: which check catches which defect, and what else fails beside it.

    python -m tests.defects.matrix            every defect; writes docs/defect-matrix.md and .json
    python -m tests.defects.matrix NAME …     these only, printed in full, nothing written

A defect that only rewrites answers is applied to recordings of a healthy simulator and judged by every check
that needs no load; any other is booted, recorded anew and judged by a part of the checks (part.py), or with
--full by all of them. So is one for which alone a healthy simulator would have to be recorded.

Several are judged at once, which disturbs what is measured. A defect whose own checks are undecided for that,
as a gate would say, is judged once more with the machine for itself; the last line says how many were.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import as_completed
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.launch.protocol import BootError
from pytest_vllm.sim.defects.registry import all_defects
from tests.defects import page
from tests.defects.judging import Check, View, collect, judge_all, judge_changed
from tests.defects.outcome import Outcome, causes_in_words, judged, killers, not_booted, summary
from tests.defects.part import part_for
from tests.defects.promises import broken
from tests.defects.recording import hurried, profile_for, record, rewritten
from tests.defects.room import own_pool, own_room, room

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pytest

    from pytest_vllm.decide.verdict import Result
    from pytest_vllm.sim.defects.registry import Defect

ROOT = Path(__file__).parents[2]
#: Of a longer tier, or in need of clients: test_clients.py, test_explore.py, test_restart.py, test_soak.py.
ELSEWHERE = ("clients", "explore", "restart", "soak")
#: Processes at once. Many defects are waits: with three the cores idle for a quarter of the time.
WORKERS = 4
#: Defects that one process judges in turn over the same healthy recordings, and too few for recordings.
BATCH, TOO_FEW = 25, 2


@cache
def suites() -> tuple[list[Check], list[pytest.Item]]:
    """Every check, collected once."""
    return collect()


@cache
def recorded_only() -> list[Check]:
    """The checks that need no load: what a rewritten answer is judged by."""
    return [check for check in suites()[0] if not check.measured]


@cache
def healthy(needs: tuple[str, ...] = (), environ: tuple[str, ...] = (), profile: str = "sim") -> View:
    """Recordings of a healthy simulator with these serve arguments and environment."""
    with room("healthy") as folder:
        items = [check.item for check in recorded_only()]
        outcome = record(folder, profile_for(needs=needs, environ=environ, name=profile), items)
    if isinstance(outcome, BootError):
        raise outcome
    return rewritten(outcome)


@cache
def healthy_results(
    needs: tuple[str, ...] = (), environ: tuple[str, ...] = (), profile: str = "sim"
) -> list[Result]:
    """What every check says of that healthy simulator."""
    return judge_all(recorded_only(), healthy(needs, environ, profile))


def replayed(name: str) -> bool:
    """Whether a defect is applied to recordings: it can be, and enough others share them."""
    defect = all_defects()[name]
    return defect.rewrites and _sharing()[_config(defect)] > TOO_FEW


@cache
def _sharing() -> Counter[tuple[str, ...]]:
    return Counter(_config(one) for one in all_defects().values() if one.rewrites)


def _config(defect: Defect) -> tuple[str, ...]:
    return (*defect.needs, *defect.environ, defect.profile)


def outcome_of(name: str, *, full: bool = False) -> Outcome:
    """Break the simulator by one defect and judge it."""
    defect = all_defects()[name]
    if replayed(name):
        config = (defect.needs, defect.environ, defect.profile)
        before, said = healthy(*config), healthy_results(*config)
        started = time.monotonic()
        after = rewritten(before, defect)
        results = judge_changed(recorded_only(), before, said, after)
        return judged(defect, results, time.monotonic() - started, after, live=False)
    started = time.monotonic()
    checks, _ = suites()
    chosen = checks if full else part_for(defect, checks)
    with room(name) as folder:
        profile = hurried(profile_for([name], name=defect.profile))
        view = record(folder, profile, [check.item for check in chosen])
    if isinstance(view, BootError):
        return not_booted(defect, view, time.monotonic() - started)
    return judged(defect, judge_all(chosen, view), time.monotonic() - started, view, live=True)


def batches(names: Sequence[str]) -> list[list[str]]:
    """What one process does in turn: what is booted first, one by one, then those that share recordings.

    Of these first what takes longest, the scripted ones, in smaller parts: else one process ends long after
    the others.
    """
    known = all_defects()
    alike: dict[object, list[str]] = defaultdict(list)
    for name in names:
        one = known[name]
        alike[_config(one) if replayed(name) else name].append(name)
    parts = []
    for group in alike.values():
        size = BATCH if known[group[0]].area != "scripted" else BATCH // 3
        parts += [group[at : at + size] for at in range(0, len(group), size)]
    return sorted(parts, key=lambda part: (replayed(part[0]), known[part[0]].area != "scripted"))


def _outcomes_of(names: Sequence[str], full: bool) -> list[Outcome]:
    return [outcome_of(name, full=full) for name in names]


def run(
    names: Sequence[str],
    workers: int = WORKERS,
    *,
    full: bool = False,
    say: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """The outcomes of these defects, in order, over several processes; each is told as it comes.

    Those that are unsettled are judged again in the end, one by one.
    """
    suites()  # before the processes are forked, so that they share it
    done: dict[str, Outcome] = {}
    with own_pool(workers) as pool:
        tasks = [pool.submit(_outcomes_of, part, full) for part in batches(names)]
        for task in as_completed(tasks):
            for outcome in task.result():
                done[outcome.defect] = outcome
                say(outcome)
    unsettled = [name for name in names if done[name].unsettled]
    if unsettled:
        with own_room():
            done |= {name: replace(outcome_of(name, full=full), again=True) for name in unsettled}
    return [done[name] for name in names]


def check_ids() -> list[str]:
    """The ids of every check."""
    return sorted({check.spec.id for check in suites()[0]})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the matrix; the exit status says whether what promises.py lists holds."""
    parser = argparse.ArgumentParser(prog="python -m tests.defects.matrix", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="defects; all of them unless given")
    parser.add_argument("--area", help="only the defects of this area")
    parser.add_argument("--live", action="store_true", help="only defects that are booted")
    parser.add_argument("--full", action="store_true", help="judge booted defects by every check")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="N of them, evenly spread")
    parser.add_argument("--workers", type=int, default=WORKERS)
    options = parser.parse_args(argv)
    known = all_defects()
    names = options.names or [
        name
        for name, one in known.items()
        if one.area not in ELSEWHERE
        and options.area in (None, one.area)
        and not (options.live and replayed(name))
    ]
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no defect {', '.join(unknown)}; `pytest-vllm defects` lists them")
    if options.sample:
        names = names[:: max(1, len(names) // options.sample)]
    whole = not (options.names or options.area or options.live or options.sample)
    started = time.monotonic()
    counter = _Counter(len(names), started, in_full=bool(options.names))
    outcomes = run(names, options.workers, full=options.full, say=counter.say)
    by_check = killers(outcomes, check_ids())
    said = summary(outcomes, by_check)
    if whole:
        page.write(outcomes, by_check, said, ROOT / "docs", full=options.full)
    wrong = list(broken(outcomes, by_check)) if whole else [one.defect for one in outcomes if not one.caught]
    if whole:
        print("\n".join(wrong))
    print(f"{said}; {causes_in_words(outcomes)}; {time.monotonic() - started:.0f} s")
    return 1 if wrong else 0


class _Counter:
    """Prints outcomes as they come: how many are done, how long the rest may take."""

    def __init__(self, total: int, started: float, *, in_full: bool) -> None:
        self.total, self.started, self.in_full, self.done = total, started, in_full, 0

    def say(self, outcome: Outcome) -> None:
        self.done += 1
        spent = time.monotonic() - self.started
        left = spent / self.done * (self.total - self.done)
        head, *rest = outcome.lines()
        print(f"{self.done}/{self.total} {spent:.0f} s, {left:.0f} s left  {head}", flush=True)
        if self.in_full or not (outcome.caught and outcome.diagnosed):
            print(*rest, sep="\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
