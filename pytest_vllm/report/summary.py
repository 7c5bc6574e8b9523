"""Counts and groups that every format shows: suites by verdict, ids by reason, waivers and their end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.decide.verdict import Verdict
from pytest_vllm.report.text import clock, listed, nouns

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_vllm.decide.verdict import Result
    from pytest_vllm.profile.model import Waiver
    from pytest_vllm.report.record import Phase, RunRecord

#: Verdicts in the order of the table, with the words of its head.
COLUMNS = {
    Verdict.PASS: "passed",
    Verdict.FAIL: "failed",
    Verdict.ADVISORY: "advisory",
    Verdict.WAIVED: "waived",
    Verdict.NOT_RUN: "not run",
    Verdict.UNDECIDED: "undecided",
}


@dataclass(frozen=True)
class Suite:
    """One row of the table."""

    profile: str
    area: str
    counts: Mapping[Verdict, int]


@dataclass(frozen=True)
class Group:
    """Checks that share a reason."""

    reason: str
    checks: tuple[str, ...]


@dataclass(frozen=True)
class WaiverUse:
    """A waiver of a profile and what became of it: used, expired (its check fails again), or unused."""

    profile: str
    waiver: Waiver
    state: str


def suites(results: Iterable[Result]) -> list[Suite]:
    """Counts by profile and suite, in order of first mention."""
    counted: dict[tuple[str, str], Counter[Verdict]] = {}
    for row in results:
        counted.setdefault((row.profile, row.area), Counter())[row.verdict] += 1
    return [Suite(profile, area, counts) for (profile, area), counts in counted.items()]


def by_reason(rows: Iterable[tuple[str, str]]) -> list[Group]:
    """(reason, check id) pairs by the first line of the reason, the largest group first."""
    groups: dict[str, list[str]] = {}
    for reason, check in rows:
        groups.setdefault(reason.split("\n")[0], []).append(check)
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    return [Group(reason, tuple(checks)) for reason, checks in ordered]


def names(checks: Sequence[str]) -> str:
    """Up to three ids, or their first words with counts: `lora.* (11), chat.* (2)`."""
    if len(checks) <= 3:
        return ", ".join(checks)
    first = Counter(check.partition(".")[0] for check in checks)
    return listed((f"{word}.* ({count})" for word, count in first.items()), most=6)


def waiver_uses(record: RunRecord) -> list[WaiverUse]:
    """Every waiver of the run's profiles and what became of it."""
    today = record.started.date()
    return [
        WaiverUse(name, waiver, _state(waiver, [r for r in record.results if r.profile == name], today))
        for name, run in record.servers.items()
        for waiver in run.waivers
    ]


def _state(waiver: Waiver, results: Iterable[Result], today: dt.date) -> str:
    mine = [row for row in results if waiver.check in (row.check, row.check.partition("[")[0])]
    if any(row.verdict is Verdict.WAIVED for row in mine):
        return "used"
    failing = any(row.verdict is Verdict.FAIL for row in mine)
    return "expired" if failing and waiver.until < today else "unused"


def phase_text(phase: Phase) -> str:
    """`record 0:12 (80 exchanges, 8 at once, bound 0:14)`."""
    detail = phase.detail
    known = []
    if "exchanges" in detail:
        known.append(f"{detail['exchanges']} {nouns(detail['exchanges'], 'exchange')}")
    if "concurrency" in detail:
        known.append(f"{detail['concurrency']} at once")
    if phase.seconds >= 1 and isinstance(detail.get("bound_seconds"), int | float):
        word = "bound" if detail.get("within_bound", True) else "above its bound"
        known.append(f"{word} {_seconds(detail['bound_seconds'])}")
    if detail.get("stopped"):
        known.append(f"stopped: {detail['stopped']}")
    return f"{phase.name} {_seconds(phase.seconds)}" + (f" ({', '.join(known)})" if known else "")


def _seconds(seconds: float) -> str:
    return clock(seconds) if seconds >= 10 else f"{seconds:.1f}s"
