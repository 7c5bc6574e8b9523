"""Suites x defects: which check catches which defect, and what else fails beside it.

    python -m tests.defects.matrix            every defect; writes docs/defect-matrix.md and .json
    python -m tests.defects.matrix NAME …     these only, printed in full, nothing written

A defect that only rewrites answers is applied to recordings of a healthy simulator; any other is booted and
recorded anew. The same checks judge both.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.launch.protocol import BootError
from pytest_vllm.sim.defects.registry import Defect, all_defects
from pytest_vllm.verdict import SIGNS_OF_LIFE, Verdict, decide
from tests.defects.judging import Check, View, collect, judge_all, judge_changed
from tests.defects.recording import profile_for, record, rewritten

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from pytest_vllm.profile.model import Profile
    from pytest_vllm.verdict import Result

ROOT = Path(__file__).parents[2]
BOOT_AREA = "boot"
#: Its checks are of a longer tier, and each of its defects needs two starts: test_restart.py runs them.
ELSEWHERE = "restart"
WORKERS = 2
MOST_UNRELATED = 10
CAUGHT = (Verdict.FAIL, Verdict.ADVISORY)


@dataclass(frozen=True)
class Outcome:
    """What the suites said about one defect.

    Args:
        defect: its name.
        area: the area it belongs to.
        failed: MUST checks that fail, the likeliest culprit first.
        advisory: SHOULD and INFO checks that fail.
        unrelated: failing MUST checks of other areas that the defect does not name.
        undecided: how many checks could not be decided.
        boot: why the server did not boot; empty when it did.
        cause: id of the known cause that the start was found to fail for.
        seconds: recording and judging.
        live: whether it was booted, instead of applied to recordings.
        expected: the checks that the defect names.
    """

    defect: str
    area: str
    failed: tuple[str, ...] = ()
    areas: tuple[str, ...] = ()
    advisory: tuple[str, ...] = ()
    unrelated: tuple[str, ...] = ()
    undecided: int = 0
    boot: str = ""
    cause: str = ""
    seconds: float = 0.0
    live: bool = False
    expected: tuple[str, ...] = ()
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def caught(self) -> bool:
        """Whether the gate says NO-GO, or does not open, for the cause that the defect names if it does."""
        causes = [name for name in self.expected if name.startswith("boot:")]
        return bool(self.failed or self.boot) and (not causes or f"boot:{self.cause}" in causes)

    @property
    def diagnosed(self) -> bool:
        """Whether the first thing that a person reads names the right area."""
        if self.boot:
            return self.area == BOOT_AREA
        return bool(self.areas) and self.areas[0] == self.area


@cache
def suites() -> tuple[list[Check], list[pytest.Item]]:
    """Every check, collected once per process."""
    return collect()


@cache
def healthy(needs: tuple[str, ...] = (), environ: tuple[str, ...] = (), profile: str = "sim") -> View:
    """Recordings of a healthy simulator with these serve arguments and environment."""
    outcome = _boot(profile_for(needs=needs, environ=environ, name=profile))
    if isinstance(outcome, BootError):
        raise outcome
    return rewritten(outcome)


@cache
def healthy_results(
    needs: tuple[str, ...] = (), environ: tuple[str, ...] = (), profile: str = "sim"
) -> list[Result]:
    """What every check says of that healthy simulator."""
    return judge_all(suites()[0], healthy(needs, environ, profile))


def _boot(profile: Profile) -> View | BootError:
    _, items = suites()
    with tempfile.TemporaryDirectory(prefix="vllm-matrix-", ignore_cleanup_errors=True) as folder:
        return record(Path(folder), profile, items)


def outcome_of(name: str) -> Outcome:
    """Break the simulator by one defect and judge it by every check."""
    defect = all_defects()[name]
    started = time.monotonic()
    checks, _ = suites()
    if defect.rewrites:
        config = (defect.needs, defect.environ, defect.profile)
        before = healthy(*config)
        results = judge_changed(checks, before, healthy_results(*config), rewritten(before, defect))
        return _judged(defect, results, time.monotonic() - started)
    view = _boot(profile_for([name], name=defect.profile))
    if isinstance(view, BootError):
        return _not_booted(defect, view, time.monotonic() - started)
    return _judged(defect, judge_all(checks, view), time.monotonic() - started)


def _not_booted(defect: Defect, error: BootError, seconds: float) -> Outcome:
    why = f"{error.what}; {error.means}" if error.means else error.what
    return Outcome(
        defect.name,
        defect.area,
        boot=why,
        cause=error.cause,
        seconds=round(seconds, 2),
        live=True,
        expected=defect.catches,
    )


def _judged(defect: Defect, results: Sequence[Result], seconds: float) -> Outcome:
    failed = decide(results).failed
    related = {name.partition("[")[0] for name in defect.catches}
    unrelated = {
        r.check.partition("[")[0]
        for r in failed
        if r.area != defect.area and r.check.partition("[")[0] not in related
    }
    if any(r.check in SIGNS_OF_LIFE for r in failed):
        unrelated = set()  # where nothing is generated everything fails, and the verdict says so first
    wrong = [r for r in results if r.verdict in CAUGHT]
    return Outcome(
        defect=defect.name,
        area=defect.area,
        failed=tuple(r.check for r in failed),
        areas=tuple(r.area for r in failed),
        advisory=tuple(r.check for r in results if r.verdict is Verdict.ADVISORY),
        unrelated=tuple(sorted(unrelated)),
        undecided=sum(1 for r in results if r.verdict is Verdict.UNDECIDED),
        seconds=round(seconds, 2),
        live=not defect.rewrites,
        expected=defect.catches,
        reasons={r.check: r.reason for r in wrong},
    )


def run(names: Sequence[str], workers: int = WORKERS) -> list[Outcome]:
    """The outcomes of these defects, in order, over several processes."""
    if workers == 1 or len(names) == 1:
        return [outcome_of(name) for name in names]
    known = all_defects()
    # neighbours share a healthy recording: sorted by what they need, dealt out in turn
    ordered = sorted(
        names, key=lambda name: (not known[name].rewrites, known[name].profile, known[name].needs, name)
    )
    with ProcessPoolExecutor(workers) as pool:
        done = {one.defect: one for one in pool.map(outcome_of, ordered)}
    return [done[name] for name in names]


def killers(outcomes: Sequence[Outcome]) -> dict[str, list[str]]:
    """Check id -> the defects under which it fails."""
    found: dict[str, list[str]] = {check.spec.id: [] for check in suites()[0]}
    for outcome in outcomes:
        for check in {key.partition("[")[0] for key in (*outcome.failed, *outcome.advisory)}:
            found.setdefault(check, []).append(outcome.defect)
    return found


def summary(outcomes: Sequence[Outcome]) -> str:
    """`N defects, N caught, 0 missed; M checks, M with a killer`."""
    caught = sum(outcome.caught for outcome in outcomes)
    by_check = killers(outcomes)
    killed = sum(1 for names in by_check.values() if names)
    return (
        f"{len(outcomes)} defects, {caught} caught, {len(outcomes) - caught} missed; "
        f"{len(by_check)} checks, {killed} with a killer"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the matrix; the exit status says whether every defect was caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.defects.matrix", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="defects; all of them unless given")
    parser.add_argument("--area", help="only the defects of this area")
    parser.add_argument("--workers", type=int, default=WORKERS)
    options = parser.parse_args(argv)
    known = all_defects()
    chosen = [n for n, d in known.items() if d.area != ELSEWHERE and options.area in (None, d.area)]
    names = options.names or chosen
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no defect {', '.join(unknown)}; `pytest-vllm defects` lists them")
    started = time.monotonic()
    outcomes = run(names, options.workers)
    whole = not options.names and options.area is None
    for outcome in outcomes:
        if not whole or not outcome.caught:
            _print(outcome)
    if whole:
        from tests.defects import page

        page.write(outcomes, killers(outcomes), summary(outcomes), ROOT / "docs")
    print(f"{summary(outcomes)}; {time.monotonic() - started:.0f} s")
    return 0 if all(outcome.caught for outcome in outcomes) else 1


def _print(outcome: Outcome) -> None:
    state = "caught" if outcome.caught else "MISSED"
    where = "diagnosed" if outcome.diagnosed else "NOT DIAGNOSED"
    print(f"{state}, {where}  {outcome.defect} ({outcome.area})  {outcome.seconds} s")
    rows: list[Any] = [("boot", f"{outcome.cause or 'unknown'}: {outcome.boot}")] if outcome.boot else []
    rows += [("failed", f"{name}: {outcome.reasons[name][:140]}") for name in outcome.failed]
    rows += [("advisory", f"{name}: {outcome.reasons[name][:100]}") for name in outcome.advisory]
    rows += [("unrelated", ", ".join(outcome.unrelated))] if outcome.unrelated else []
    rows += [("undecided", outcome.undecided)] if outcome.undecided else []
    for label, text in rows:
        print(f"    {label:10} {text}")


if __name__ == "__main__":
    sys.exit(main())
