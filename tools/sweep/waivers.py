"""Failures of a sweep that are known upstream: waived as the gate waives them, told with their threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_vllm.decide.verdict import Family, Level, Result, Verdict
from pytest_vllm.decide.waivers import apply_waivers, covers, in_range, stale_waivers
from pytest_vllm.locate import data_dir
from pytest_vllm.profile.known import with_known_faults
from pytest_vllm.profile.load import load
from pytest_vllm.profile.parsers import NONE, with_parsers

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_vllm.profile.model import Waiver
    from tools.sweep.rows import Outcome, Pair, Row

_VERDICTS: dict[Outcome, Verdict] = {
    "passed": Verdict.PASS,
    "failed": Verdict.FAIL,
    "unpromised": Verdict.FAIL,
    "undecided": Verdict.UNDECIDED,
}
_AREA = "scripted."


@dataclass(frozen=True)
class RowJudgement:
    """A row, its failures told apart.

    Args:
        row: of the parsers.
        failed: check -> what was wrong, where no waiver holds.
        waived: check -> the waiver that holds.
        stale: the waivers that nothing needs any more, a line each.
    """

    row: Row
    failed: dict[str, str]
    waived: dict[str, Waiver]
    stale: tuple[str, ...] = ()

    @property
    def upstream(self) -> list[str]:
        """The threads of what is waived."""
        return sorted({waiver.issue for waiver in self.waived.values()})

    def plain(self) -> dict[str, Any]:
        """The row as JSON, with what became of its failures."""
        return {
            **self.row.plain(),
            "failed": len(self.failed),
            "waived": {check: waiver.issue for check, waiver in self.waived.items()},
            "stale": list(self.stale),
        }


def judged(row: Row, waivers: Sequence[Waiver], today: dt.date) -> RowJudgement:
    """A row with its failures waived where they are known.

    Args:
        row: of the parsers.
        waivers: those that hold for these parsers; none to see it raw.
        today: an ended waiver waives nothing.
    """
    failed: dict[str, str] = {}
    waived: dict[str, Waiver] = {}
    results = []
    for key, outcome in row.outcomes.items():
        check = key if key.startswith(_AREA) else f"{_AREA}answer.{key}"
        seen = Result(
            check, Level.MUST, Family.CONFORMANCE, _VERDICTS[outcome], "", row.evidence.get(key, "")
        )
        result = apply_waivers(seen, waivers, row.version, today)
        results.append(result)
        if outcome == "failed" and result.verdict is Verdict.WAIVED:
            waived[key] = next(
                one for one in waivers if covers(one, check) and in_range(row.version, one.versions)
            )
        elif outcome == "failed":
            failed[key] = result.reason
    stale = stale_waivers(results, waivers, row.version, "")
    return RowJudgement(row, failed, waived, tuple(one.reason for one in stale))


def waivers_of(pair: Pair, profile: Path | None = None) -> list[Waiver]:
    """What a gate on the scripted profile waives when it is served with these parsers.

    Args:
        pair: the parsers.
        profile: another profile's file than that of the built-in `cpu-scripted`.
    """
    path = profile or data_dir("fixtures") / "profiles" / "cpu-scripted.toml"
    served = with_parsers(load(str(path), path.parent), pair.tool or None, pair.reasoning or NONE)
    return [one for one in with_known_faults(served).waive if one.check.startswith(_AREA)]
