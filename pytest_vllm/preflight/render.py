"""Findings as lines for people, and as SARIF for code hosts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.preflight.judged import counted, findings_in
from pytest_vllm.preflight.rule import ERROR, NOTE, RULES, WARNING, Severity
from pytest_vllm.profile.lines import lines as lines_of
from pytest_vllm.profile.sarif import location, log, result

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_vllm.preflight.judged import Verdict
    from pytest_vllm.preflight.rule import Finding
    from pytest_vllm.profile.model import Profile

_LEVELS = {ERROR: "error", WARNING: "warning", NOTE: "note"}
_PLURALS = {ERROR: "errors", WARNING: "warnings", NOTE: "notes"}


class Places:
    """Where keys of a profile stand: its file, and the line of each key or of the table around it."""

    def __init__(self, profile: Profile) -> None:
        self.file: Path | None = profile.source
        self.name = profile.name
        self.known: dict[tuple[str | int, ...], int] = {}
        if self.file is not None and self.file.is_file():
            self.known = lines_of(self.file.read_text("utf-8"))

    def line(self, key: str) -> int:
        """The line of a key; of the nearest table around it when it is not written here."""
        path = tuple(int(part) if part.isdigit() else part for part in key.split("."))
        spelled = {_spelled(one): line for one, line in self.known.items()}
        inside = ("tool", "pytest-vllm", "profiles", self.name)
        for prefix in ((), inside):
            whole = _spelled((*prefix, *path))
            while len(whole) > len(prefix):
                if whole in spelled:
                    return spelled[whole]
                whole = whole[:-1]
        return 1

    def place(self, key: str) -> str:
        """`ours.toml:14`; the key where no file has it, as in an imported profile."""
        return f"{self.shown}:{self.line(key)}" if self.known else f"{self.name} {key}"

    @property
    def shown(self) -> str:
        """The file as messages name it."""
        return self.file.name if self.file is not None else f"{self.name}.toml"


def _spelled(path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    return tuple(part.replace("_", "-") if isinstance(part, str) else part for part in path)


def lines(findings: Sequence[Finding], profile: Profile) -> list[str]:
    """`profile.toml:12: error  flags.removed  …`, one line each, worst first; no summary."""
    places = Places(profile)
    rows = [(f"{places.place(one.key)}:", str(one.severity), one.rule, one.text) for one in findings]
    wide = max((len(place) for place, *_ in rows), default=0)
    names = max((len(name) for _, _, name, _ in rows), default=0)
    return [f"{place:<{wide}} {severity:<7}  {name:<{names}}  {text}" for place, severity, name, text in rows]


def summary(said: Sequence[Verdict], profile: Profile) -> str:
    """`spark-fp8: 1 error, 2 notes; no finding in 120 rules; 60 not judged: model unknown (48): add …`."""
    found = findings_in(said)
    told = [_count(found, severity) for severity in (ERROR, WARNING, NOTE)]
    heads = ", ".join(text for text in told if text)
    return f"{profile.name}: {'; '.join(text for text in (heads, counted(said)) if text)}"


def judgement(said: Sequence[Verdict], profile: Profile) -> dict[str, Any]:
    """`findings`, one table each, and `rules`: what every rule says, and what it misses."""
    rules = [{"rule": one.rule, "said": one.said, "missing": list(one.missing)} for one in said]
    return {"findings": as_json(findings_in(said), profile), "rules": rules}


def catalogue() -> str:
    """Every rule, as a Markdown table."""
    rows = [
        f"| `{one.name}` | {one.severity} | {one.versions.replace('>=', '≥ ').replace('<', '< ')} "
        f"| {one.summary} | {one.source} |"
        for one in sorted(RULES.values(), key=lambda rule: rule.name)
    ]
    return "\n".join(
        ["| rule | worst | vLLM | what is wrong | source |", "| --- | --- | --- | --- | --- |", *rows]
    )


def _count(findings: Sequence[Finding], severity: Severity) -> str:
    count = sum(one.severity is severity for one in findings)
    return "" if not count else f"{count} {severity if count == 1 else _PLURALS[severity]}"


def as_json(findings: Sequence[Finding], profile: Profile) -> list[dict[str, Any]]:
    """One table per finding."""
    places = Places(profile)
    return [
        {
            "rule": one.rule,
            "severity": str(one.severity),
            "key": one.key,
            "file": str(places.file) if places.file else None,
            "line": places.line(one.key),
            "observed": one.observed,
            "means": one.means,
            "fix": _plain_fix(one),
            "advice": one.advice,
        }
        for one in findings
    ]


def _plain_fix(found: Finding) -> dict[str, Any] | None:
    fix = found.fix
    if fix is None:
        return None
    changed = (
        {"value": fix.value} if fix.action == "set" else {"to": fix.to} if fix.action == "rename" else {}
    )
    return {"key": fix.key, "action": fix.action, **changed}


def sarif(findings: Sequence[Finding], profile: Profile, root: Path, version: str) -> dict[str, Any]:
    """A SARIF 2.1.0 log: one run, the rules that spoke, one result per finding.

    Args:
        findings: what was found.
        profile: in what.
        root: paths are relative to it where they lie below.
        version: ours.
    """
    places = Places(profile)
    uri = _uri(places.file, root) if places.file else places.shown
    names = sorted({one.rule for one in findings})
    results = [
        {
            **result(one.rule, names, _LEVELS[one.severity], one.text, _where(one.key, uri, places)),
            "partialFingerprints": {"pytestVllmKey/v1": f"{one.rule}:{one.key}"},
        }
        for one in findings
    ]
    return log("pytest-vllm preflight", version, [_sarif_rule(name) for name in names], results)


def _where(key: str, uri: str, places: Places) -> dict[str, Any]:
    return {**location(uri, places.line(key)), "logicalLocations": [{"fullyQualifiedName": key}]}


def _sarif_rule(name: str) -> dict[str, Any]:
    known = RULES[name]
    return {
        "id": name,
        "shortDescription": {"text": known.summary},
        "help": {"text": f"Source: {known.source}"},
        "defaultConfiguration": {"level": _LEVELS[known.severity]},
    }


def _uri(file: Path, root: Path) -> str:
    resolved, base = file.resolve(), root.resolve()
    return resolved.relative_to(base).as_posix() if resolved.is_relative_to(base) else resolved.as_uri()


def sarif_text(findings: Sequence[Finding], profile: Profile, root: Path, version: str) -> str:
    """The same as text."""
    return json.dumps(sarif(findings, profile, root, version), indent=1, ensure_ascii=False) + "\n"
