"""Python files that are read and never run: classes, constants, literals and types as facts write them."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

#: What a node is whose value only a run would know.
UNKNOWN: Final = object()


class Code:
    """The package `vllm` below a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root / "vllm"
        self._trees: dict[str, ast.Module] = {}
        self._bound: dict[str, tuple[dict[str, ast.expr], dict[str, list[tuple[str, str]]]]] = {}

    def files(self, under: str = "") -> list[str]:
        """Paths of Python files, relative to the package."""
        return sorted(str(path.relative_to(self.root)) for path in (self.root / under).rglob("*.py"))

    def source(self, path: str) -> str:
        """A file's text."""
        return (self.root / path).read_text("utf-8", "replace")

    def tree(self, path: str) -> ast.Module:
        """A file's syntax tree; an empty one for what is not there or not Python of this version."""
        if path not in self._trees:
            try:
                self._trees[path] = ast.parse((self.root / path).read_text("utf-8"))
            except (OSError, SyntaxError):
                self._trees[path] = ast.Module([], [])
        return self._trees[path]

    @cached_property
    def classes(self) -> dict[str, tuple[str, ast.ClassDef]]:
        """Classes of the layers that face users, by name: file and node. Of two namesakes, the first."""
        found: dict[str, tuple[str, ast.ClassDef]] = {}
        for path in (*self.files("entrypoints"), *self.files("engine"), *self.files("config")):
            for node in self.tree(path).body:
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, (path, node))
        return found

    def constant(self, name: str, path: str) -> tuple[ast.expr, str] | None:
        """The expression that a name of a file stands for, and the file it was found in."""
        own = self._names(path)[0].get(name)
        if own is not None:
            return own, path
        for module, original in self._imported(name, path):
            found = self.constant(original, module)
            if found:
                return found
        return None

    def _imported(self, name: str, path: str) -> list[tuple[str, str]]:
        """Files that a name is imported from, with its name there."""
        found = []
        known = self._names(path)[1]
        for module, original in [*known.get(name, ()), *((module, name) for module, _ in known.get("*", ()))]:
            base = "/".join(module.split(".")[1:])
            found += [(place, original) for place in (f"{base}.py", f"{base}/__init__.py") if place != path]
        return [(place, original) for place, original in found if (self.root / place).is_file()]

    def _names(self, path: str) -> tuple[dict[str, ast.expr], dict[str, list[tuple[str, str]]]]:
        """What a file binds: names with their first expression, and names that it imports from vLLM."""
        if path in self._bound:
            return self._bound[path]
        bound: dict[str, ast.expr] = {}
        imported: dict[str, list[tuple[str, str]]] = {}
        for node in ast.walk(self.tree(path)):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        bound.setdefault(target.id, node.value)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
                bound.setdefault(node.target.id, node.value)
            elif isinstance(node, ast.ImportFrom) and (module := _absolute(node, path)).startswith("vllm"):
                for one in node.names:
                    imported.setdefault(one.asname or one.name, []).append((module, one.name))
        self._bound[path] = (bound, imported)
        return bound, imported

    def value(self, node: ast.expr | None, path: str) -> Any:
        """The value of an expression; UNKNOWN where only a run would know it."""
        if isinstance(node, ast.Name):
            found = self.constant(node.id, path)
            return self.value(*found) if found else UNKNOWN
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Add | ast.Pow | ast.LShift):
            return _computed(node.op, self.value(node.left, path), self.value(node.right, path))
        try:
            return ast.literal_eval(node) if node is not None else UNKNOWN
        except ValueError:
            return UNKNOWN

    def options(self, node: ast.expr, path: str) -> list[Any]:
        """What a `Literal` admits, those of the aliases in it included; none for other types."""
        if isinstance(node, ast.Name):
            found = self.constant(node.id, path)
            return self.options(*found) if found else []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return [*self.options(node.left, path), *self.options(node.right, path)]
        if not isinstance(node, ast.Subscript):
            return []
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if _named(node.value) == "Literal":
            return [
                option
                for part in parts
                for option in ([part.value] if isinstance(part, ast.Constant) else self.options(part, path))
            ]
        inside = parts[:1] if _named(node.value) in ("Annotated", "Optional") else parts
        wrapped = _named(node.value) in ("Annotated", "Optional", "Union")
        return [option for part in inside for option in self.options(part, path)] if wrapped else []

    def type_of(self, node: ast.expr, path: str) -> str:  # noqa: PLR0911 - one return per way to write a type
        """An annotation as the facts write it: `{low,high}|None`, `list[dict[str,Any]]`."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.type_of(ast.parse(node.value, mode="eval").body, path)
        if isinstance(node, ast.BinOp):
            return f"{self.type_of(node.left, path)}|{self.type_of(node.right, path)}"
        options = self.options(node, path) if not _is(node, "str") else []
        if options and (isinstance(node, ast.Name) or _named(getattr(node, "value", None)) == "Literal"):
            return "{" + ",".join(map(str, options)) + "}"
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            head = _named(node.value)
            if head == "Annotated":
                return self.type_of(parts[0], path)
            written = [self.type_of(part, path) for part in parts]
            if head == "Optional":
                return f"{written[0]}|None"
            return "|".join(written) if head == "Union" else f"{head}[{','.join(written)}]"
        return ast.unparse(node).replace(" ", "")


def called(node: ast.AST | None) -> str:
    """The last part of a called name; empty where nothing is called."""
    return _named(node.func) if isinstance(node, ast.Call) else ""


def keyword(node: ast.Call, name: str) -> ast.expr | None:
    """An argument by name."""
    return next((one.value for one in node.keywords if one.arg == name), None)


def texts(node: ast.AST) -> list[str]:
    """Every string in a tree; in an f-string, what is put in shows as `{}`."""
    found: list[str] = []
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            found.append(one.value)
        if isinstance(one, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "{}" for part in one.values)
            found.append("".join(parts))
    return found


def _computed(operator: ast.operator, left: Any, right: Any) -> Any:
    if UNKNOWN in (left, right):
        return UNKNOWN
    if isinstance(operator, ast.Add):
        return left + right if type(left) is type(right) else UNKNOWN
    if not isinstance(left, int) or not isinstance(right, int):
        return UNKNOWN
    if isinstance(operator, ast.Mult):
        return left * right
    return left**right if isinstance(operator, ast.Pow) else left << right


def _absolute(node: ast.ImportFrom, path: str) -> str:
    """The module that an import names, a relative one counted from its file."""
    if not node.level:
        return node.module or ""
    folders = ["vllm", *path.split("/")[:-1]]
    return ".".join([*folders[: len(folders) - node.level + 1], *([node.module] if node.module else [])])


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _named(node: ast.AST | None) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
