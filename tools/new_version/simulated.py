"""The simulator's own tables (flags, metrics, request schemas), extended by what changed in a version."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.check.typed import node_of

if TYPE_CHECKING:
    from tools.new_version.fold import Changes, Topics

Table = dict[str, Any]

#: Parts of vLLM whose metrics an ordinary server does not export.
SPECIAL = ("distributed", "entrypoints", "v1/simple", "v1/kv_offload")


def extended(tables: dict[str, Table], topics: Topics, changes: Changes) -> dict[str, Table]:
    """The tables `flags`, `metrics` and `schema` with what the changes touch, as the facts now have it."""
    tables = deepcopy(tables)
    first = next(iter(topics["versions"]["entries"]))
    flags = changes["flags"]
    for name in (*flags.added, *flags.removed, *flags.changed):
        tables["flags"][f"--{name}"] = _flag(topics["flags"]["entries"][name], first)
    families, entries = tables["metrics"]["families"], topics["metrics"]["entries"]
    for name in changes["metrics"].added:
        entry = entries[name]
        if "unknown" not in entry["type"] and not entry.get("component", "").startswith(SPECIAL):
            families[name] = _family(entry, first)
    for name in changes["metrics"].removed:
        if name in families:
            families[name]["span"][1] = entries[name]["removed"]
    labels = tables["metrics"]["cache_config"]
    for name in (*changes["cache-config"].added, *changes["cache-config"].removed):
        entry = topics["cache-config"]["entries"][name]
        value = labels.get(name, {}).get("value", "None")
        labels[name] = {"span": _span(entry, first), "absent": entry.get("absent", []), "value": value}
    for name, entry in changes["fields"].added.items():
        owner, _, field = name.partition(".")
        if owner in tables["schema"]["added"]:
            tables["schema"]["added"][owner][field] = topics["fields"]["entries"][name].get("added", first)
            tables["schema"]["schemas"][owner]["properties"].setdefault(field, node_of(entry["type"]))
    return tables


def _flag(entry: dict[str, Any], first: str) -> Table:
    choices = entry.get("choices")
    steps = choices["@"] if isinstance(choices, dict) else [[entry.get("added", first), choices]]
    absent = entry.get("absent", [])
    return {
        "span": [entry.get("added", first), absent[0][0] if absent else entry.get("removed", "")],
        "type": _steps(entry["type"]),
        "default": _steps(entry.get("default")),
        "negatable": entry.get("negatable", ""),
        "aliases": entry.get("aliases", []),
        "choices": [[since, _checked(listed)] for since, listed in steps] if "choices" in entry else [],
        "reappears": absent[0][1] if absent else "",
    }


def _checked(listed: list[Any] | None) -> list[str] | None:
    named = [str(one) for one in listed or ()]
    return None if not named or any(one.startswith("@") for one in named) else sorted(named)


def _family(entry: dict[str, Any], first: str) -> Table:
    return {
        "span": _span(entry, first),
        "type": _steps(entry["type"]),
        "labels": _steps(entry.get("labels", ["@base"])),
        "engines": _steps(entry["engines"]),
        "when": _steps(entry.get("when", [])),
        "help": "",
        "seen": False,
    }


def _span(entry: dict[str, Any], first: str) -> list[str]:
    return [entry.get("added", first), entry.get("removed", "")]


def _steps(value: Any) -> Any:
    return value["@"] if isinstance(value, dict) and set(value) == {"@"} else value
