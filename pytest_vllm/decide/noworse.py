"""No worse than before: what failed in a baseline and still fails is reported, and does not count. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.decide.baseline import HOLDS, WRONG
from pytest_vllm.decide.verdict import Answer, Level, Result, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_vllm.decide.baseline import Baseline
    from pytest_vllm.decide.verdict import Decision

MOST = 5


def excused(result: Result, baseline: Baseline | None, *, strict: bool = False) -> Result:
    """The result of a run that is only to be no worse than its baseline.

    A check that failed then and fails now is waived, and its reason says since when; so is one that could not
    be decided now and did not hold then. A MUST that held and does not apply any more is undecided: whether
    the server lost something or was given another task, no check knows.

    Args:
        result: as it is judged.
        baseline: of the same profile; None leaves the result alone.
        strict: whether advisory and undecided SHOULD checks count too.
    """
    before = baseline.verdicts.get(result.check) if baseline else None
    if baseline is None or before is None:
        return result
    counts = result.level is Level.MUST or strict
    failed = result.verdict is Verdict.FAIL or (strict and result.verdict is Verdict.ADVISORY)
    still = failed and before in (Verdict.FAIL, Verdict.ADVISORY)
    unclear = counts and result.verdict is Verdict.UNDECIDED and before in WRONG
    since = f"{baseline.taken} (vLLM {baseline.version})"
    if still or unclear:
        reason = f"it did not hold before ({before} on {since}): {result.reason}"
        return replace(result, verdict=Verdict.WAIVED, reason=reason, excused=str(result.verdict))
    if result.verdict is Verdict.NOT_RUN and result.level is Level.MUST and before in HOLDS:
        why = f"it held on {since} and does not apply now: {result.reason}"
        reason = f"{why}; save a new baseline if that is meant"
        return replace(result, verdict=Verdict.UNDECIDED, reason=reason)
    return result


def worsened(decision: Decision, worse: Sequence[str]) -> Decision:
    """The decision of a run that is to be no worse than an older server, where something else is worse.

    Args:
        decision: of the checks.
        worse: what is worse beside them, each in words.
    """
    if not worse:
        return decision
    more = f" and {len(worse) - MOST} more" if len(worse) > MOST else ""
    why = f"worse than the older server: {'; '.join(worse[:MOST])}{more}"
    beside = decision.why if decision.answer is Answer.NO_GO else f"of the checks alone: {decision.why}"
    return replace(decision, answer=Answer.NO_GO, why=f"{why}; {beside}")


def unneeded(result: Result) -> Result:
    """A waiver that nothing needs any more: reported and not counted, since what was mended is not worse."""
    return replace(result, verdict=Verdict.WAIVED, excused=str(result.verdict))


def lost(results: Iterable[Result], baseline: Baseline) -> str:
    """Which checks that held are not part of this run, as a doubt in words; empty where all are."""
    asked = {row.check for row in results}
    gone = sorted(
        check for check, verdict in baseline.verdicts.items() if verdict in HOLDS and check not in asked
    )
    if not gone:
        return ""
    more = f" and {len(gone) - MOST} more" if len(gone) > MOST else ""
    count = "1 check" if len(gone) == 1 else f"{len(gone)} checks"
    return (
        f"{count} that held on {baseline.taken} did not run: {', '.join(gone[:MOST])}{more}; save a new "
        "baseline if that is meant"
    )


def told(results: Iterable[Result]) -> str:
    """How much is excused, for the answer's sentence; empty where nothing is."""
    number = sum(bool(row.excused) for row in results)
    if not number:
        return ""
    verb = "does" if number == 1 else "do"
    return f"no worse than the baseline: {number} that did not hold before {verb} not hold now"
