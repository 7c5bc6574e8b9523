"""From single observations to one decision: GO, NO-GO or UNDECIDED.

Pure: no I/O, no pytest, nothing of ours. A check is observed (`Observation`), its level turns the
observation into a `Verdict`, and `decide` turns all results of a run into a `Decision`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Level(StrEnum):
    """How binding a check is. MUST breaks the gate, SHOULD advises, INFO records."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    INFO = "INFO"


class Family(StrEnum):
    """Whose fault a failing check is: the server's, the model's, the speed's or the host's."""

    CONFORMANCE = "conformance"
    CAPABILITY = "capability"
    PERFORMANCE = "performance"
    ENVIRONMENT = "environment"


class Verdict(StrEnum):
    """What one check says about the server."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    ADVISORY = "advisory"
    WAIVED = "waived"
    NOT_RUN = "not-run"
    UNDECIDED = "undecided"


class Answer(StrEnum):
    """What the whole run says about the deployment."""

    GO = "GO"
    NO_GO = "NO-GO"
    UNDECIDED = "UNDECIDED"
    NOTHING_RAN = "NOTHING RAN"
    NO_VERDICT = "NO VERDICT"


EXIT_CODES = {
    Answer.GO: 0,
    Answer.NO_VERDICT: 0,
    Answer.NO_GO: 1,
    Answer.NOTHING_RAN: 5,
    Answer.UNDECIDED: 21,
}
EXIT_NO_BOOT = 20


@dataclass(frozen=True)
class Result:
    """One check on one profile, judged.

    Args:
        check: the dotted id, with the case in brackets where there is one.
        level: MUST, SHOULD or INFO.
        family: whose fault a failure is.
        verdict: what the check says.
        fact: the requirement, one line.
        reason: what was observed instead, or why nothing could be; empty on a pass.
        area: the suite folder, for the table.
        source: `file:line` of the check.
        spec: `source:anchor` of the requirement.
        exchanges: keys of the recordings that were judged.
        seconds: time the judging took.
        observations: name -> value, what INFO checks record.
        profile: the profile the server was booted from.
        nodeid: what pytest calls it.
        excused: the verdict that it would have, where `--vllm-no-worse` lets it pass; empty mostly.
        file: the file of a person's own check, as a command line takes it; empty for a bundled one.
    """

    check: str
    level: Level
    family: Family
    verdict: Verdict
    fact: str
    reason: str = ""
    area: str = ""
    source: str = ""
    spec: str = ""
    exchanges: tuple[str, ...] = ()
    seconds: float = 0.0
    observations: Mapping[str, str] = field(default_factory=dict)
    profile: str = ""
    nodeid: str = ""
    excused: str = ""
    file: str = ""


@dataclass(frozen=True)
class Decision:
    """The answer of a run, and the results that made it."""

    answer: Answer
    why: str
    counts: Mapping[Verdict, int]
    failed: tuple[Result, ...] = ()
    undecided: tuple[Result, ...] = ()

    @property
    def exit_code(self) -> int:
        """The process exit status that carries this answer."""
        return EXIT_CODES[self.answer]


def grade(level: Level, *, held: bool) -> Verdict:
    """The verdict of a check whose requirement was tested: held or not."""
    if held:
        return Verdict.PASS
    return Verdict.FAIL if level is Level.MUST else Verdict.ADVISORY


@dataclass(frozen=True)
class OwnTests:
    """Tests of the person's own that are not checks, counted.

    Args:
        failed: those that failed, or whose set-up or teardown did.
        passed: those that passed.
        asking: those of the passed ones that use the server.
        idle: those that were skipped or failed as expected.
        counting: whether passing ones make a GO without any check.
        alone: whether the run asked for no bundled check, so that pytest's own result is its exit status.
    """

    failed: int = 0
    passed: int = 0
    asking: int = 0
    idle: int = 0
    counting: bool = False
    alone: bool = False


NO_TESTS = OwnTests()


def decide(
    results: Iterable[Result], *, own: OwnTests = NO_TESTS, strict: bool = False, deaths: Sequence[str] = ()
) -> Decision:
    """The answer of a run.

    A failing check outweighs an undecided one: what is known to be broken needs no further evidence.
    Nothing run, or nothing decided, is never GO.

    Args:
        results: every check that was selected.
        own: tests that are not checks.
        strict: advisory and undecided SHOULD checks count like MUST checks.
        deaths: how servers ended or hung while they were tested, which no selection of checks hides.
    """
    rows = list(results)
    counts = Counter(row.verdict for row in rows)
    failing = [r for r in rows if r.verdict is Verdict.FAIL or (strict and r.verdict is Verdict.ADVISORY)]
    failed = tuple(by_suspicion(failing, rows))
    undecided = tuple(r for r in rows if r.verdict is Verdict.UNDECIDED and (strict or r.level is Level.MUST))
    decided = sum(1 for r in rows if r.verdict not in (Verdict.NOT_RUN, Verdict.UNDECIDED))
    if failed or own.failed or deaths:
        why = "; ".join(filter(None, [_no_go(failed, own.failed, strict=strict), *deaths]))
        return Decision(Answer.NO_GO, why, counts, failed, undecided)
    if undecided:
        why = f"{_checks(len(undecided), 'MUST')} could not be decided"
        return Decision(Answer.UNDECIDED, why, counts, failed, undecided)
    if not decided:
        return Decision(*_unchecked(len(rows), own), counts, failed, undecided)
    why = f"{_checks(decided)} decided, none failed"
    beside = f"; {_own(own.passed)} passed" if own.passed else ""
    return Decision(Answer.GO, why + beside, counts, failed, undecided)


def _unchecked(selected: int, own: OwnTests) -> tuple[Answer, str]:
    """The answer where no check says anything, and why."""
    none = f"none of the {selected} selected checks ran" if selected > 1 else "the selected check did not run"
    why = none if selected else "no check ran"
    if not own.alone:
        return Answer.NOTHING_RAN, why
    if own.counting:
        asked = own.asking and not selected
        return (Answer.GO, f"{_own(own.asking)}, 0 checks") if asked else (Answer.NOTHING_RAN, why)
    if own.passed:
        return Answer.NO_VERDICT, f"{_own(own.passed)} passed, {why}"
    if own.idle and not selected:
        return Answer.NO_VERDICT, f"{_own(own.idle)} skipped, {why}"
    return Answer.NOTHING_RAN, why


def qualified(decision: Decision, *, doubts: Sequence[str] = (), partial: str = "") -> Decision:
    """The decision with what limits it: a GO under doubt is UNDECIDED, everything else keeps its answer.

    Args:
        decision: of the results alone.
        doubts: why the run itself may have missed a failure, in words.
        partial: how much of the tier was selected, in words.
    """
    answer = Answer.UNDECIDED if doubts and decision.answer is Answer.GO else decision.answer
    why = "; ".join(filter(None, [decision.why, *doubts, partial]))
    return replace(decision, answer=answer, why=why)


#: Checks that fail when the server computes nothing at all, or no longer.
SIGNS_OF_LIFE = ("health.generates", "profile.server.stays-up")
#: Areas that judge loads: whatever is wrong with an answer shows in them, too.
OF_LOADS = ("memory", "performance", "throughput", "soak")
#: What looks at every answer, or asks for a bit of everything: a fault of any area shows in them, too.
OF_EVERYTHING, EVERY_ANSWER = (
    ("sizes", "pairs", "oracle", "crowd", "spelling", "edges"),
    ("answers.whole", "answers.complete"),
)
#: Within the id of a check that holds every answer to what its area is about.
EVERY = ".every."
#: What a failing check of them weighs, measured with `tests.defects.matrix`.
LOADS_WEIGH, EVERYTHING_WEIGHS, EVERY_ANSWER_WEIGHS = 0.25, 0.02, 0.001
#: As much, where it is about one matter in all answers.
EVERY_WEIGHS = 0.015
#: Added to what an area decided: one failure among few checks does not outweigh several among many, measured
#: with `tests.defects.matrix`. Fewer, where it is asked whether most of its checks cannot read an answer.
FEW, HANDFUL = 25, 5
#: From this share of its checks on an area's answers count as those that cannot be read, weighed.
UNREAD = 0.3
#: Within the reason of a check that fails because it cannot read an answer: the fault is the answer's.
MISREAD = "can't be judged, its answer is malformed"


def by_suspicion(failing: list[Result], rows: list[Result]) -> list[Result]:
    """Failing checks, the likeliest culprit's area first.

    One fault often shows in several areas. The area where it lies has most of its decided checks failing:
    areas are ranked by that share, checks keep their order within an area. A server that does not generate
    fails everywhere: then the area that says so comes first. Areas of loads weigh less, and less still those
    that look at everything.
    """
    share = suspicion(failing, rows)
    silent = {r.area for r in failing if r.check in SIGNS_OF_LIFE}
    return sorted(failing, key=lambda r: (r.area not in silent, -share[r.area], MISREAD in r.reason))


def suspicion(failing: Sequence[Result], rows: Iterable[Result]) -> dict[str, float]:
    """Area -> which share of its decided checks fails for what they look at, 0 to 1, weighed.

    Where most of them fail for answers that they cannot read, the one area whose answers cannot be read comes
    first, or, where there is none such, the check of every answer.
    """
    decided = Counter(r.area for r in rows if r.verdict not in (Verdict.NOT_RUN, Verdict.UNDECIDED))
    found = dict.fromkeys((r.area for r in failing), 0.0)
    misread = [one for one in failing if MISREAD in one.reason]
    mostly = 2 * len(misread) >= len(failing)
    unread = _unread(misread, decided) if mostly else ""
    for one in failing:
        if mostly and one.check in EVERY_ANSWER:
            found[unread or one.area] += 0.5
        elif MISREAD not in one.reason:
            found[one.area] += _weight(one) / (FEW + decided[one.area])
    return found


def _unread(misread: Sequence[Result], decided: Mapping[str, int]) -> str:
    """Whose answers cannot be read; empty when no one area's.

    The area that what is wrong with them names, as `logprobs` or `usage`, else that of which most checks
    cannot read theirs, and no other's half as many.
    """
    share, named = dict.fromkeys((one.area for one in misread), 0.0), Counter[str]()
    for one in misread:
        share[one.area] += _weight(one) / (HANDFUL + decided[one.area])
        named.update(re.findall(r"[a-z]+", one.reason.partition(MISREAD)[2].partition(" (")[0]))
    if said := [area for area in share if 2 * named[area] > len(misread)]:
        return max(said, key=lambda area: share[area])
    area = max(share, key=lambda one: share[one], default="")
    others = max((part for one, part in share.items() if one != area), default=0.0)
    return area if area and share[area] >= max(UNREAD, 2 * others) else ""


def of_everything(one: Result) -> bool:
    """Whether a check looks at every answer, or asks for a bit of everything."""
    return one.area in OF_EVERYTHING or one.check in EVERY_ANSWER or EVERY in one.check


def _weight(one: Result) -> float:
    if one.check in EVERY_ANSWER:
        return EVERY_ANSWER_WEIGHS
    if of_everything(one):
        return EVERY_WEIGHS if EVERY in one.check else EVERYTHING_WEIGHS
    return LOADS_WEIGH if one.area in OF_LOADS else 1.0


def _no_go(failed: tuple[Result, ...], own_failures: int, *, strict: bool) -> str:
    parts = []
    if failed:
        parts.append(f"{_checks(len(failed), '' if strict else 'MUST')} failed")
    if own_failures:
        parts.append(f"{own_failures} of your own tests failed")
    return ", ".join(parts)


def _own(count: int) -> str:
    return f"{count} own {'test' if count == 1 else 'tests'}"


def _checks(count: int, level: str = "") -> str:
    noun = "check" if count == 1 else "checks"
    return f"{count} {level} {noun}".replace("  ", " ")
