"""What is shipped is used by what is shipped: a function that only tests call is dead weight."""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest_vllm
from tests.contract.imports import ROOT, modules

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SHIPPED = [*modules("pytest_vllm"), *modules("suites"), *modules("tools")]
WORD = re.compile(r"\w+")

#: What only tests use today, and why it is kept.
KEPT = {
    "paired_interval": "2026-11-29: the comparison of two servers by turns, whose power is tested already",
    "rewritten_metrics": "the defect matrix applies defects to recordings by it",
    "acts_on": "the same",
}


def definitions(path: Path) -> Iterator[str]:
    """Undecorated functions and classes of a module, and undecorated methods that are not overrides."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list:
            yield node.name
        if isinstance(node, ast.ClassDef) and not [one for one in node.decorator_list if _registers(one)]:
            yield node.name
            yield from (
                one.name
                for one in node.body
                if isinstance(one, ast.FunctionDef) and not node.bases and not one.name.startswith("__")
            )


def _registers(node: ast.expr) -> bool:
    name = node.func if isinstance(node, ast.Call) else node
    return not (
        isinstance(name, ast.Name) and name.id in {"dataclass", "total_ordering", "runtime_checkable"}
    )


def unused() -> list[str]:
    """`path: name` of what nothing shipped mentions a second time."""
    texts = {path: (ROOT / path).read_text("utf-8") for path in SHIPPED}
    counts = Counter(word for text in texts.values() for word in WORD.findall(text))
    public = set(pytest_vllm.__all__)
    return [
        f"{path}: {name}"
        for path in modules("pytest_vllm")
        for name in definitions(path)
        if counts[name] < 2
        and name not in public | set(KEPT)
        and not name.startswith(("pytest_", "__"))
        and not name.endswith("Launcher")  # made by name, see launch/registry.py
    ]


def test_nothing_is_called_by_tests_alone() -> None:
    """Call it, or remove it with its tests."""
    assert unused() == []


def test_what_is_kept_is_there() -> None:
    """A name that is gone, or used meanwhile, needs no reason."""
    defined = {name for path in modules("pytest_vllm") for name in definitions(path)}

    assert set(KEPT) <= defined
