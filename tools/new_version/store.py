"""The files that know vLLM's versions: read, and written as they were."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts.timeline import DATA
from pytest_vllm.locate import PACKAGE
from tools.facts.build import write as write_facts

if TYPE_CHECKING:
    from pathlib import Path

    from tools.new_version.fold import Topics

TABLES = PACKAGE / "preflight" / "tables"
PREFLIGHT = ("architectures", "choices", "environment")
SIMULATED = ("flags", "metrics", "schema")
FACTS = (
    "versions", "flags", "parsers", "metrics", "cache-config", "routes", "fields", "logs", "startup-errors",
)  # fmt: skip
#: Files with ranges of versions that end where a fault was not seen any more.
RANGES = ("fixtures/waivers/vllm.toml", "fixtures/waivers/parsers.toml", "pytest_vllm/facts/faults.toml")


def topics(folder: Path = DATA, tables: Path = TABLES) -> Topics:
    """Every topic by name, those of preflight too."""
    return {name: _read(folder / f"{name}.json") for name in FACTS} | {
        name: _read(tables / f"{name}.json") for name in PREFLIGHT
    }


def simulated(folder: Path = DATA) -> dict[str, Any]:
    """The simulator's own tables by name."""
    return {name: _read(folder / f"sim-{name}.json") for name in SIMULATED}


def save(
    found: Topics, own: dict[str, Any], date: str, folder: Path = DATA, tables: Path = TABLES
) -> list[str]:
    """Write what differs from the files. Returns the names of the files."""
    written = []
    for name in FACTS:
        if found[name] != _read(folder / f"{name}.json"):
            write_facts({name: found[name]}, folder)
            written.append(f"{name}.json")
    for name in PREFLIGHT:
        if found[name] != _read(tables / f"{name}.json"):
            (tables / f"{name}.json").write_text(_table(found[name] | {"written": date}), "utf-8")
            written.append(f"preflight/tables/{name}.json")
    for name, table in own.items():
        text = json.dumps(table, ensure_ascii=False, separators=(",", ":"), sort_keys=name != "schema") + "\n"
        path = folder / f"sim-{name}.json"
        if text != path.read_text("utf-8"):
            path.write_text(text, "utf-8")
            written.append(path.name)
    return written


def _table(content: dict[str, Any]) -> str:
    head = ", ".join(f'"{key}": {json.dumps(content[key])}' for key in content if key != "entries")
    rows = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in content["entries"].items())
    return f'{{{head}, "entries": {{\n{rows}\n}}}}\n'


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found
