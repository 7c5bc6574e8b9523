"""A comparison as a conformance report in YAML, in the manner of the Gateway API's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.report.compared import HEAVY, TITLES, of
from pytest_vllm.report.text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

API = "pytest-vllm/v1"
#: Keys of the lists, by weight.
NAMES = {"breaks clients": "breaksClients", "behaviour": "behaviour", "speed": "speed"}


def report(document: Mapping[str, Any]) -> str:
    """The YAML of a comparison (`compare.comparison`): who was compared, counts, and what weighs something.

    `result` is `success` where nothing breaks clients, else `failure`. What is for information is counted.
    """
    import yaml  # noqa: PLC0415 - only where somebody asks for it

    before, after = document["before"], document["after"]
    counts = {weight: len(of(document, weight)) for weight in TITLES}
    profile: dict[str, Any] = {
        "name": after["profile"],
        "result": "failure" if document["answer"]["breaks"] else "success",
        "summary": document["answer"]["text"],
        "statistics": {NAMES.get(weight, "information"): count for weight, count in counts.items()},
    }
    for weight in HEAVY:
        if rows := [_row(one) for one in of(document, weight)]:
            profile[NAMES[weight]] = rows
    if document["not_compared"]:
        profile["notCompared"] = dict(document["not_compared"])
    body = {
        "apiVersion": API,
        "kind": "ConformanceReport",
        "date": after["started"],
        "implementation": _who(after),
        "comparedWith": _who(before),
        "profiles": [profile],
    }
    return str(yaml.safe_dump(_plain(body), sort_keys=False, allow_unicode=True, width=100))


def _who(side: Mapping[str, Any]) -> dict[str, Any]:
    named = {
        "project": "vllm",
        "version": side["version"] or "unknown",
        "model": side["model"],
        "run": side["run"],
    }
    return named | ({"simulated": True} if side["simulated"] else {})


def _row(one: Mapping[str, Any]) -> dict[str, Any]:
    names = {"area": "area", "what": "what", "before": "before", "after": "after", "means": "consequence"}
    return {name: one[key] for key, name in names.items() if one[key]} | (
        {"source": one["source"]} if one["source"] else {}
    )


def _plain(value: Any) -> Any:
    """Texts without control characters, which YAML could not hold."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return str(printable(str(value))) if isinstance(value, str) else value
