"""Reads which modules a Python file imports, without running it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Import:
    """One imported module.

    Args:
        module: dotted name; names taken from `pytest_vllm` itself count as its modules.
        types_only: under `if TYPE_CHECKING`, so that it binds nothing at run time.
        lazy: inside a function.
        line: where it stands.
    """

    module: str
    types_only: bool
    lazy: bool
    line: int

    def within(self, *names: str) -> bool:
        """Whether the module is one of these or lies below one of them."""
        return any(self.module == name or self.module.startswith(f"{name}.") for name in names)


def imports_of(source: str, package: str = "") -> list[Import]:
    """All imports of a module's source text; `package` resolves relative ones."""
    return list(_walk(ast.parse(source), package, types_only=False, lazy=False))


def modules(folder: str) -> list[Path]:
    """The Python files of a top-level folder, relative to the checkout, in order."""
    return sorted(path.relative_to(ROOT) for path in (ROOT / folder).rglob("*.py"))


def _walk(node: ast.AST, package: str, *, types_only: bool, lazy: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        for name in _names(child, package):
            yield Import(name, types_only, lazy, getattr(child, "lineno", 0))
        guarded = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _walk(child, package, types_only=types_only or guarded, lazy=lazy or inside)


def _names(node: ast.AST, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        above = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*above, base]).rstrip(".")
    if base in {"pytest_vllm", "suites"} or (node.level and not node.module):
        return [f"{base}.{alias.name}" for alias in node.names]
    return [base]
