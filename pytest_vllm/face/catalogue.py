"""The bundled checks as a list, read from the suites themselves."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pytest_vllm.declare.sources import url_of
from pytest_vllm.locate import data_dir, suites_package

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from types import ModuleType

    from pytest_vllm.declare.checks import CheckSpec

MARK = "vllm_check"


@dataclass(frozen=True)
class Entry:
    """One check of the catalogue.

    Args:
        spec: what it declares.
        area: its suite's folder.
        file: `suites/AREA/test_TOPIC.py`.
        line: where the function starts.
    """

    spec: CheckSpec
    area: str
    file: str
    line: int

    def plain(self) -> dict[str, Any]:
        """All of it, for JSON."""
        spec = self.spec
        return {
            "id": spec.id,
            "level": spec.level.value,
            "family": spec.family.value,
            "tier": spec.tier,
            "area": self.area,
            "needs": list(spec.needs),
            "spec": spec.spec,
            "url": url_of(spec.spec),
            "exclusive": spec.exclusive,
            "fact": spec.fact,
            "file": self.file,
            "line": self.line,
        }


def entries() -> list[Entry]:
    """Every bundled check, by area and file, in the order of the file."""
    package, root = suites_package(), data_dir("suites")
    if "." not in package and str(root.parent) not in sys.path:
        sys.path.insert(0, str(root.parent))
    return [entry for path in sorted(root.glob("*/test_*.py")) for entry in _of_file(path, package)]


def _of_file(path: Path, package: str) -> Iterator[Entry]:
    area = path.parent.name
    module = importlib.import_module(f"{package}.{area}.{path.stem}")
    for spec, line in sorted(_marked(module), key=lambda found: found[1]):
        yield Entry(spec, area, f"suites/{area}/{path.name}", line)


def _marked(module: ModuleType) -> Iterator[tuple[CheckSpec, int]]:
    for function in vars(module).values():
        for mark in getattr(function, "pytestmark", ()):
            if mark.name == MARK and function.__module__ == module.__name__:
                yield mark.args[0], function.__code__.co_firstlineno


def markdown(found: Iterable[Entry]) -> str:
    """The catalogue as a page: one table per area. Lines are left out: they move with every edit."""
    rows = list(found)
    lines = [
        "# The bundled checks",
        "",
        f"{len(rows)} checks. Made by `pytest-vllm checks --markdown`; do not edit.",
        "MUST breaks the gate, SHOULD advises, INFO records.",
        "A check that needs what the server lacks is not run.",
    ]
    for area, members in groupby(rows, key=lambda entry: entry.area):
        lines += [
            "",
            f"## {area}",
            "",
            "| id | level | requirement | needs | tier | source |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        lines += [_row(entry) for entry in members]
    return "\n".join(lines) + "\n"


def _row(entry: Entry) -> str:
    spec = entry.spec
    family = "" if spec.family.value == "conformance" else f" ({spec.family.value})"
    fact = spec.fact.replace("|", "\\|")
    url = url_of(spec.spec)
    source = f"[{spec.spec}]({url})" if url.startswith("http") else spec.spec
    cells = (f"`{spec.id}`", f"{spec.level.value}{family}", fact, ", ".join(spec.needs), spec.tier, source)
    return f"| {' | '.join(cells)} |"
