"""What preflight knows beside the facts of versions: environment variables, architectures, advisories.

Each table says in `written` on which day it was put together.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pytest_vllm.facts.version import Version

_TABLES = Path(__file__).parent / "tables"


@cache
def table(name: str) -> dict[str, Any]:
    """A table: `written`, `source`, `entries`."""
    content: dict[str, Any] = json.loads((_TABLES / f"{name}.json").read_text("utf-8"))
    return content


def entries(name: str) -> dict[str, dict[str, Any]]:
    """The rows of a table by name."""
    rows: dict[str, dict[str, Any]] = table(name)["entries"]
    return rows


def lives(row: dict[str, Any], release: Version) -> bool:
    """Whether something exists in a version: from `added` until before `removed`, `absent` left out."""
    if "added" in row and release < Version(row["added"]):
        return False
    if "removed" in row and release >= Version(row["removed"]):
        return False
    return not any(Version(start) <= release < Version(end) for start, end in row.get("absent", ()))


def names(topic: str, release: Version) -> list[str]:
    """The choices of a topic (`speculation`, `attention`) that a version has."""
    return sorted(
        key.partition("/")[2]
        for key, row in entries("choices").items()
        if key.startswith(f"{topic}/") and lives(row, release)
    )


@dataclass(frozen=True)
class Advisory:
    """A published weakness of vLLM.

    Args:
        name: CVE, GHSA or PYSEC id.
        severity: critical, high, medium or low.
        effect: what happens.
        fixed: the first version without it; empty while none is known.
        when: what a deployment must have for it to matter, one of them; empty when it always does.
    """

    name: str
    severity: str
    effect: str
    fixed: str
    when: tuple[str, ...]


@cache
def advisories(release: Version) -> tuple[Advisory, ...]:
    """Those that a version has, the worst first."""
    order = ("critical", "high", "medium", "low")
    found = [
        Advisory(name, row["severity"], row["effect"], row.get("fixed", ""), tuple(row.get("when", ())))
        for name, row in entries("advisories").items()
        if _affects(row, release)
    ]
    return tuple(sorted(found, key=lambda one: (order.index(one.severity), one.name)))


def _affects(row: dict[str, Any], release: Version) -> bool:
    if "since" in row and release < Version(row["since"]):
        return False
    if "fixed" in row:
        return release < Version(row["fixed"])
    return "last" not in row or release <= Version(row["last"])
