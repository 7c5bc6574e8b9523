"""How files are cut and named."""

from __future__ import annotations

import ast
import re
import statistics
from typing import TYPE_CHECKING

import pytest

from tests.contract.imports import ROOT, modules

if TYPE_CHECKING:
    from pathlib import Path

LONGEST = 400
MEDIAN = 120

#: Words that say nothing of the domain.
EMPTY_WORDS = re.compile(r"(^|_)(manager|helpers?|utils?|data)(_|$)|(Manager|Helper|Util|Data)s?($|[A-Z])")

#: Named by others: `locate` finds whatever is shipped, asyncio names its protocols, SSE its `data:` field.
GIVEN_NAMES = frozenset({"data_dir", "data_received", "keeps_alive_by_data"})

SOURCES = [path for folder in ("pytest_vllm", "suites", "tests") for path in modules(folder)]


def length(path: Path, *, blank: bool = True) -> int:
    """Lines of a file; without `blank`, those that hold something."""
    lines = (ROOT / path).read_text("utf-8").splitlines()
    return sum(1 for line in lines if blank or line.strip())


def test_no_module_is_long() -> None:
    """Nothing above 400 lines: such a file holds two things."""
    assert {str(path): length(path) for path in SOURCES if length(path) > LONGEST} == {}


@pytest.mark.parametrize("folder", ["pytest_vllm", "suites"])
def test_most_modules_fit_on_two_screens(folder: str) -> None:
    """The median is at most 120 lines that hold something."""
    lengths = [length(path, blank=False) for path in modules(folder) if length(path) > 1]

    assert statistics.median(lengths) <= MEDIAN


def test_names_are_nouns_of_the_domain() -> None:
    """No manager, helper, util or data in the name of a module, class or function."""
    found = []
    for path in SOURCES:
        if path.parts[0] == "tests":
            continue
        names = [path.stem]
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        names += [node.name for node in ast.walk(tree) if isinstance(node, kinds)]
        found += [f"{path}: {name}" for name in names if EMPTY_WORDS.search(name) and name not in GIVEN_NAMES]

    assert found == []


def test_every_module_says_what_it_is() -> None:
    """A docstring opens every module that holds anything."""
    silent = [
        str(path)
        for path in SOURCES
        if (text := (ROOT / path).read_text("utf-8")) and ast.get_docstring(ast.parse(text)) is None
    ]

    assert silent == []


@pytest.mark.parametrize(
    ("name", "empty"),
    [("launch_manager", True), ("utils", True), ("TextData", True), ("metadata", False)],
)
def test_the_word_list_can_refuse(name: str, empty: bool) -> None:
    """The pattern sees whole words only."""
    assert bool(EMPTY_WORDS.search(name)) is empty
