"""The services of a compose file as compose puts them together: `include`, `extends`, several files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.yamlnodes import NOTHING, Node, documents

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.profile.importers.origin import Origin
    from pytest_vllm.profile.importers.variables import Variables

_DEEPEST = 8
#: Lists of a service that replace those of the service it extends; all others are added to them.
_REPLACED = ("command", "entrypoint", "test")
_PATHS = ("env_file", "volumes")


class Files:
    """The services of a file, with those of the files that it names."""

    def __init__(self, origin: Origin, names: Variables) -> None:
        """Keep where, and what names in paths stand for."""
        self.origin, self.names = origin, names

    def services(self, document: Node, folder: Path, depth: int = 0) -> dict[str, Node]:
        """Name -> service, its `extends` resolved."""
        found: dict[str, Node] = {}
        for entry in document.get("include").items:
            paths = entry.get("path").items if isinstance(entry.value, dict) else [entry]
            for path in paths:
                inner, place = self._document(path, folder, depth)
                found |= {
                    name: moved(one, place, entry.line)
                    for name, one in self.services(inner, place, depth + 1).items()
                }
        own = dict(document.get("services").pairs)
        for name, node in own.items():
            found[name] = self._extended(name, node, own, folder, depth)
        return found

    def _extended(self, name: str, node: Node, own: dict[str, Node], folder: Path, depth: int) -> Node:
        extends = node.get("extends")
        if not extends or not isinstance(node.value, dict):
            return node
        if depth > _DEEPEST:
            raise self.origin.problem(
                extends.line, f"the service {name} extends itself", "write its keys out"
            )
        file, wanted = extends.get("file"), extends.get("service").text or extends.text
        place = folder
        if file:
            inner, place = self._document(file, folder, depth)
            own = dict(inner.get("services").pairs)
        base = own.get(wanted)
        if base is None:
            where = f" in {file.text}" if file else ""
            raise self.origin.problem(extends.line, f"there is no service {wanted!r}{where} to extend")
        base = self._extended(wanted, base, own, place, depth + 1)
        base = moved(base, place, extends.line) if file else base
        return combined(base, Node({k: v for k, v in node.pairs if k != "extends"}, node.plain, node.line))

    def _document(self, path: Node, folder: Path, depth: int) -> tuple[Node, Path]:
        """The document of another file, and its folder. Raises ImportProblem when it is not there."""
        written = self.names.text(path.text, path.line)
        target = folder / written
        if depth > _DEEPEST:
            raise self.origin.problem(path.line, f"{written} includes itself", "take one of the two out")
        if not target.is_file():
            raise self.origin.problem(path.line, f"the file {written} is not there", f"put it at {target}")
        other = replace(
            self.origin,
            text=target.read_text("utf-8-sig", "replace"),
            shown=str(target),
            folder=target.parent,
        )
        return (documents(other) or [NOTHING])[0], target.parent


def combined(base: Node, over: Node, key: str = "") -> Node:
    """Two values as compose merges them: tables by key, lists behind each other, all else replaced."""
    if key in ("environment", "labels", "sysctls", "extra_hosts"):
        base, over = _table(base), _table(over)
    if isinstance(base.value, dict) and isinstance(over.value, dict):
        merged = dict(base.value)
        for name, one in over.value.items():
            merged[name] = combined(merged[name], one, name) if name in merged else one
        return Node(merged, {name: one.plain for name, one in merged.items()}, over.line)
    if key not in _REPLACED and (isinstance(base.value, list) or isinstance(over.value, list)):
        entries = [*base.items, *over.items]
        return Node(entries, [one.plain for one in entries], over.line)
    return over


def moved(node: Node, folder: Path, line: int, key: str = "") -> Node:
    """A value of another file: its paths whole, its lines that of the key which brought it in."""
    if isinstance(node.value, dict):
        inner = {
            name: moved(one, folder, line, key if key in _PATHS else name) for name, one in node.value.items()
        }
        return Node(inner, node.plain, line)
    if isinstance(node.value, list):
        return Node([moved(one, folder, line, key) for one in node.value], node.plain, line)
    if isinstance(node.value, str) and (
        key == "env_file" or (key == "volumes" and node.value.startswith("."))
    ):
        return Node(_whole(node.value, folder), node.plain, line)
    return Node(node.value, node.plain, line)


def _whole(text: str, folder: Path) -> str:
    return (
        text
        if text.startswith(("/", "~", "$")) or text in ("true", "false")
        else f"{folder}/{text.removeprefix('./')}"
    )


def _table(node: Node) -> Node:
    """`[A=1, B]` as `{A: 1, B: }`."""
    if not isinstance(node.value, list):
        return node
    pairs = [(one, one.text.partition("=")) for one in node.value]
    table = {
        name: Node(text if sign else None, text if sign else None, one.line)
        for one, (name, sign, text) in pairs
    }
    return Node(table, {name: one.plain for name, one in table.items()}, node.line)
