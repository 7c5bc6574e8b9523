"""SARIF 2.1.0 logs for code hosts: what was found, each at a line of a file, mostly a profile's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def log(
    name: str, version: str, rules: Sequence[dict[str, Any]], results: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """A log of one run.

    Args:
        name: of the tool.
        version: of the tool.
        rules: those that spoke.
        results: `result` of each finding.
    """
    driver = {"name": name, "version": version, "rules": list(rules)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": list(results)}],
    }


def result(rule: str, rules: Sequence[str], level: str, text: str, place: dict[str, Any]) -> dict[str, Any]:
    """One finding.

    Args:
        rule: its rule's id.
        rules: the ids of all rules of the log, in their order.
        level: `error`, `warning` or `note`.
        text: what was found.
        place: `location` of it.
    """
    return {
        "ruleId": rule,
        "ruleIndex": rules.index(rule),
        "level": level,
        "message": {"text": text},
        "locations": [place],
    }


def location(uri: str, line: int) -> dict[str, Any]:
    """A line of a file."""
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}}
