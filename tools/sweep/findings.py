"""`docs/vllm-findings.md`: what sweeps found out about vLLM's parsers, generated.

    python -m tools.sweep.findings [SWEEP-FOLDER …]

Folders of finished sweeps are first boiled down to `tools/sweep/swept/`, where rows of other parsers
stay; the page is made from what lies there and from `tools/sweep/findings.toml`, which says of each
kind of failure what a person found out.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.locate import data_dir
from tools.sweep.rows import Row, read, row_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HERE = Path(__file__).parent
PAGE = Path("docs/vllm-findings.md")
VERDICTS = ("confirmed", "ambiguous", "documented")
_EVIDENCE = 160


@dataclass(frozen=True)
class Finding:
    """What a person found out about failures of one kind.

    Args:
        title: the fault in one line.
        parsers: `kind:name` of those it concerns.
        checks: patterns of the keys that fail for it, with round for square brackets: `stream(*)`.
        verdict: confirmed: a fault of the parser. ambiguous: the markup itself cannot tell. documented: meant
            so.
        why: what the model writes, and what the parser promises.
        upstream: threads, as owner/repository#number; empty when none was found.
        says: what the evidence must contain; empty for anything.
    """

    title: str
    parsers: tuple[str, ...]
    checks: tuple[str, ...]
    verdict: str
    why: str
    upstream: tuple[str, ...] = ()
    says: str = ""

    def covers(self, row: Row, key: str) -> bool:
        """Whether it explains a failure."""
        plain = re.sub(r"^end\(", "stream(", short(key).replace("[", "(").replace("]", ")"))
        return (
            f"{row.pair.kind}:{row.pair.name}" in self.parsers
            and any(fnmatchcase(plain, pattern) for pattern in self.checks)
            and _alike(self.says) in _alike(row.evidence[key])
        )


def short(key: str) -> str:
    """`stream[single]` for a check's id over that script, whichever interface said it."""
    for interface in ("answer", "response", "message"):
        key = key.removeprefix(f"scripted.{interface}.")
    return key


def _alike(evidence: str) -> str:
    """Evidence as servers and parsers alone both tell it."""
    told = evidence.replace(": arguments '", " '").replace("no call, not", "calls: none; not")
    return re.sub(r"\b\d+ calls \[", "calls: [", told)


@dataclass
class Explanation:
    """The failures that one finding explains.

    Args:
        finding: what was found out; None for what nobody has looked into.
        failures: row and key of each.
    """

    finding: Finding | None
    failures: list[tuple[Row, str]] = field(default_factory=list)


def findings() -> list[Finding]:
    """What people found out. Raises ValueError for a verdict or a key that nobody knows."""
    path = HERE / "findings.toml"
    found = []
    for data in tomllib.loads(path.read_text("utf-8"))["finding"]:
        lists = {key: tuple(data[key]) for key in ("parsers", "checks", "upstream") if key in data}
        unknown = set(data) - set(Finding.__dataclass_fields__)
        if unknown or data.get("verdict") not in VERDICTS:
            raise ValueError(f"{path.name}: {data.get('title')}: {unknown or data.get('verdict')} is unknown")
        found.append(Finding(**{**data, **lists}))
    return found


def explained(rows: Iterable[Row], known: Sequence[Finding]) -> tuple[list[Explanation], Explanation]:
    """Failures by what explains them, and those that nothing does.

    What nobody promised counts where a person found a fault in it.
    """
    seen = [Explanation(finding) for finding in known]
    rest = Explanation(None)
    for row in rows:
        for key, outcome in row.outcomes.items():
            if outcome in {"failed", "unpromised"}:
                of = next((one for one in seen if one.finding and one.finding.covers(row, key)), None)
                if of or outcome == "failed":
                    (of or rest).failures.append((row, key))
    return seen, rest


def boiled(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows without what passed, evidence cut: what is kept of a sweep."""
    kept = []
    for row in rows:
        counts = Counter(row.outcomes.values())
        outcomes = {key: one for key, one in row.outcomes.items() if one != "passed"}
        evidence = {key: row.evidence[key][:_EVIDENCE] for key in outcomes if key in row.evidence}
        kept.append({**row.plain(), "outcomes": outcomes, "evidence": evidence, "passed": counts["passed"]})
    return kept


def merged(kept: Sequence[dict[str, Any]], fresh: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Boiled rows, those that were done again in place of the older ones; by kind and name."""
    by = {(one["pair"]["kind"] != "tool", one["parser"]): one for one in (*kept, *fresh)}
    return [by[key] for key in sorted(by)]


@dataclass
class SweepRecord:
    """One sweep, boiled down.

    Args:
        rows: with what did not pass.
        passed: by kind and name of the parser: how many passed.
    """

    rows: list[Row]
    passed: dict[tuple[str, str], int]

    @property
    def name(self) -> str:
        """The version, and how it was swept."""
        first = self.rows[0]
        return f"{first.version} {'parsers alone' if first.via == 'alone' else 'servers'}"


def swept() -> list[SweepRecord]:
    """The sweeps that are kept, newest version first."""
    found = []
    for path in sorted((HERE / "swept").glob("*.json"), reverse=True):
        data = json.loads(path.read_text("utf-8"))
        rows = [row_of(one) for one in data]
        passed = {(one["pair"]["kind"], one["parser"]): one["passed"] for one in data}
        found.append(SweepRecord(rows, passed))
    return found


def main(folders: Sequence[str]) -> None:
    """Keep what the sweeps of these folders found, and write the page."""
    from tools.sweep.page import page  # noqa: PLC0415 - they import this module
    from tools.sweep.waived import waived  # noqa: PLC0415

    keep = HERE / "swept"
    for folder in map(Path, folders):
        rows = read(folder)
        if not rows:
            raise SystemExit(f"{folder} holds no finished rows: name the folder that a sweep keeps")
        keep.mkdir(exist_ok=True)
        path = keep / f"{rows[0].version}-{rows[0].via}.json"
        kept = json.loads(path.read_text("utf-8")) if path.exists() else []
        lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in merged(kept, boiled(rows)))
        path.write_text(f"[\n{lines}\n]\n", "utf-8")
    (data_dir("fixtures").parent / PAGE).write_text(page(swept(), findings()), "utf-8")
    rows = [row for one in swept() for row in one.rows]
    waivers = data_dir("fixtures") / "waivers" / "parsers.toml"
    waivers.write_text(waived(rows, findings()), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
