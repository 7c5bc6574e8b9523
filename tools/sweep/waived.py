"""Waivers for the faults of parsers that are known upstream: `fixtures/waivers/parsers.toml`."""

from __future__ import annotations

import datetime as dt
import json
from collections import defaultdict
from typing import TYPE_CHECKING

from pytest_vllm.profile.parsers import NONE
from tools.sweep.findings import short
from tools.sweep.rows import cases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.sweep.findings import Finding
    from tools.sweep.rows import Row

UNTIL = dt.date(2027, 6, 30)
HEAD = """\
# Faults of vLLM's parsers that are known upstream, each for its parser: generated from the sweeps by
# `python -m tools.sweep.findings`; do not edit. Each check failed on a real server, a person found
# out why, and there is a thread. A check of a stream is waived only where it fails however the tokens come:
# others would pass at times; so do cuts and stop strings, which fall after a known token. What spoils most
# streams, or most whole answers, is not waived.
"""
_STREAMED = ("stream", "split", "chunks")
#: Checks that only servers answer, and always in the same way.
_STEADY = (
    "scripted.cut.arguments",
    "scripted.cut.finish",
    "scripted.cut.stream-finish",
    "scripted.cut.markup",
    "scripted.form.",
    "scripted.stop.",
    "scripted.thoughts.opening",
    "scripted.shape.whole",
)
#: Checks in which the parser beside has a part: with another one they may pass, or fail for another reason.
_OF_BOTH = ("scripted.stop.", "scripted.thoughts.", "scripted.shape.")


def waived(rows: Sequence[Row], known: Sequence[Finding]) -> str:
    """The file.

    Args:
        rows: of all sweeps; servers tell which checks failed, parsers alone tell how steadily.
        known: what people found out.
    """
    alone = {(row.pair, row.version): row for row in rows if row.via == "alone"}
    lines = [HEAD]
    for row in (row for row in rows if row.via == "server"):
        by: dict[tuple[Finding, bool], list[str]] = defaultdict(list)
        steady = alone.get((row.pair, row.version))
        for key, outcome in row.outcomes.items():
            if outcome in {"failed", "unpromised"} and steady and _always(steady, short(key)):
                of = next((one for one in known if one.covers(row, key)), None)
                if of and of.verdict == "confirmed" and of.upstream and not _takes_all(steady, of):
                    by[of, key.startswith(_OF_BOTH)].append(key)
        for (finding, both), checks in by.items():
            lines += _entry(row, finding, sorted(checks), both=both)
    return "\n".join(lines)


def _always(row: Row, key: str) -> bool:
    """Whether it fails whole, or in every way to cut a stream, or wherever a limit or a stop string cuts."""
    if key.startswith(_STEADY):
        return True
    mode, _, case = key.partition("[")
    keys = [f"{one}[{case}" for one in _STREAMED] if mode in _STREAMED else [key]
    return all(row.outcomes.get(one) in {"failed", "unpromised"} for one in keys)


def _takes_all(row: Row, finding: Finding) -> bool:
    """Whether it spoils most streams or most whole answers: nobody should be told GO with that."""
    for mode in ("whole", "stream"):
        spoilt = [key for key in row.evidence if key.startswith(f"{mode}[") and finding.covers(row, key)]
        if len(spoilt) * 2 > len(cases(row.pair)):
            return True
    return False


def _entry(row: Row, finding: Finding, checks: Sequence[str], *, both: bool) -> list[str]:
    return [
        "[[waive]]",
        f"parser = {json.dumps(f'{row.pair.kind}:{row.pair.name}')}",
        *([f"beside = {json.dumps(row.pair.beside or NONE)}"] if both else []),
        "checks = [",
        *(f"    {json.dumps(one)}," for one in checks),
        "]",
        f"reason = {json.dumps(finding.title, ensure_ascii=False)}",
        f"issue = {json.dumps(finding.upstream[0])}",
        f'versions = "=={row.version}"',
        f"until = {UNTIL.isoformat()}",
        "",
    ]
