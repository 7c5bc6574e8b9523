"""What the suites said about one defect, and what a whole matrix says."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from pytest_vllm.decide.verdict import MISREAD, SIGNS_OF_LIFE, Verdict, decide, of_everything
from pytest_vllm.report.causes import causes_of
from pytest_vllm.report.record import ServerRun

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_vllm.decide.verdict import Result
    from pytest_vllm.launch.protocol import BootError
    from pytest_vllm.sim.defects.registry import Defect
    from tests.defects.judging import View

BOOT_AREA = "boot"
CAUGHT = (Verdict.FAIL, Verdict.ADVISORY)


@dataclass(frozen=True)
class Outcome:
    """What the suites said about one defect.

    Args:
        defect: its name.
        area: the area it belongs to.
        failed: MUST checks that fail, those of the likeliest cause first.
        areas: their areas.
        advisory: SHOULD and INFO checks that fail.
        unrelated: failing MUST checks of other areas that the defect does not name.
        open: what each check says that could not be decided.
        checks: how many checks judged it.
        boot: why the server did not boot; empty when it did.
        cause: id of the known cause that the start was found to fail for.
        seconds: recording and judging.
        causes: into how many causes the failing MUST checks are grouped.
        live: whether it was booted, instead of applied to recordings.
        expected: the checks that the defect names.
        reasons: what each failing check says.
        again: whether it was judged once more, with the machine for itself.
    """

    defect: str
    area: str
    failed: tuple[str, ...] = ()
    areas: tuple[str, ...] = ()
    advisory: tuple[str, ...] = ()
    unrelated: tuple[str, ...] = ()
    open: dict[str, str] = field(default_factory=dict)
    checks: int = 0
    boot: str = ""
    cause: str = ""
    seconds: float = 0.0
    causes: int = 0
    live: bool = False
    expected: tuple[str, ...] = ()
    reasons: dict[str, str] = field(default_factory=dict)
    again: bool = False

    @property
    def caught(self) -> bool:
        """Whether the gate says NO-GO, or does not open, for the cause that the defect names if it does."""
        causes = [name for name in self.expected if name.startswith("boot:")]
        return bool(self.failed or self.boot) and (not causes or f"boot:{self.cause}" in causes)

    @property
    def unsettled(self) -> bool:
        """Whether a gate would say UNDECIDED, or none of the named checks fails and one is undecided."""
        named, failing = set(self.expected), {bare(key) for key in (*self.failed, *self.advisory)}
        nothing = not (self.failed or self.boot) and bool(self.open)
        return nothing or (not named & failing and bool(named & {bare(key) for key in self.open}))

    @property
    def diagnosed(self) -> bool:
        """Whether the first thing that a person reads is of the right area, or a check that the defect names.

        What several suites ask, as ranking by embeddings, may show in any of them.
        """
        if self.boot:
            return self.area == BOOT_AREA
        return bool(self.areas) and (self.areas[0] == self.area or bare(self.failed[0]) in self.expected)

    def lines(self) -> Iterator[str]:
        """All of it, for people."""
        state = "caught" if self.caught else "MISSED"
        where = "diagnosed" if self.diagnosed else "NOT DIAGNOSED"
        yield f"{state}, {where}  {self.defect} ({self.area})  {self.seconds} s"
        rows = [("boot", f"{self.cause or 'unknown'}: {self.boot}")] if self.boot else []
        rows += [("failed", f"{name}: {self.reasons[name][:140]}") for name in self.failed]
        rows += [("advisory", f"{name}: {self.reasons[name][:100]}") for name in self.advisory]
        rows += [("unrelated", ", ".join(self.unrelated))] if self.unrelated else []
        rows += [("undecided", f"{name}: {why[:100]}") for name, why in self.open.items()]
        for label, text in rows:
            yield f"    {label:10} {text}"


def not_booted(defect: Defect, error: BootError, seconds: float) -> Outcome:
    """The outcome of a defect that keeps the server from starting."""
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


def judged(defect: Defect, results: Sequence[Result], seconds: float, view: View, *, live: bool) -> Outcome:
    """The outcome of a defect by what every check says."""
    run = ServerRun(view.server, recordings=view.recordings)
    found = causes_of(decide(results).failed, results, {view.profile.name: run})
    failed = [one for cause in found for one in cause.checks]
    related = {bare(name) for name in defect.catches}
    unrelated = {bare(r.check) for r in failed if r.area != defect.area and not _shows_any(r)} - related
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
        open={r.check: r.reason for r in results if r.verdict is Verdict.UNDECIDED},
        checks=len(results),
        seconds=round(seconds, 2),
        causes=len(found),
        live=live,
        expected=defect.catches,
        reasons={r.check: r.reason for r in wrong},
    )


def _shows_any(one: Result) -> bool:
    """Whether a fault of any area shows in this: a check of every answer, or one that cannot read its own."""
    return of_everything(one) or MISREAD in one.reason


def bare(key: str) -> str:
    """A check's id, without its case."""
    return key.partition("[")[0]


def killers(outcomes: Iterable[Outcome], checks: Iterable[str]) -> dict[str, list[str]]:
    """Check id -> the defects under which it fails, for these checks."""
    found: dict[str, list[str]] = {check: [] for check in checks}
    for outcome in outcomes:
        for check in {bare(key) for key in (*outcome.failed, *outcome.advisory)}:
            found.setdefault(check, []).append(outcome.defect)
    return found


def summary(outcomes: Sequence[Outcome], by_check: dict[str, list[str]]) -> str:
    """`N defects, N caught, 0 missed; M checks, M with a killer`."""
    caught = sum(outcome.caught for outcome in outcomes)
    killed = sum(1 for names in by_check.values() if names)
    again = sum(outcome.again for outcome in outcomes)
    return (
        f"{len(outcomes)} defects, {caught} caught, {len(outcomes) - caught} missed; "
        f"{len(by_check)} checks, {killed} with a killer" + (f"; {again} judged again alone" if again else "")
    )


def causes_in_words(outcomes: Sequence[Outcome]) -> str:
    """`the first cause names the area of 750 of 758; 1 cause for one defect in the median, 7 at most`."""
    counts = [outcome.causes for outcome in outcomes if outcome.causes]
    named = f"the first cause names the area of {sum(one.diagnosed for one in outcomes)} of {len(outcomes)}"
    return (
        f"{named}; causes of one defect: {median(counts):g} in the median, {max(counts)} at most"
        if counts
        else named
    )
