"""A YAML table whose every value is accounted for: what a reader has not read is a note at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.yamlnodes import NOTHING, Node

if TYPE_CHECKING:
    from collections.abc import Iterator


class Part:
    """A value of a file; reading its text takes it off the account.

    Args:
        node: the value.
        path: the keys that lead to it.
        taken: what was read so far, shared by all parts of a file.
    """

    def __init__(
        self, node: Node, path: tuple[str, ...] = (), taken: set[tuple[str, ...]] | None = None
    ) -> None:
        """Begin with nothing read."""
        self.node, self.path = node, path
        self.taken: set[tuple[str, ...]] = set() if taken is None else taken

    @property
    def line(self) -> int:
        """Where it begins."""
        return self.node.line

    @property
    def text(self) -> str:
        """The text, empty for everything else; it counts as read."""
        if not isinstance(self.node.value, dict | list):
            self.taken.add(self.path)
        return self.node.text

    @property
    def is_table(self) -> bool:
        """Whether it has keys."""
        return isinstance(self.node.value, dict)

    @property
    def is_list(self) -> bool:
        """Whether it has entries."""
        return isinstance(self.node.value, list)

    def get(self, *path: str) -> Part:
        """The value at a path of keys."""
        return Part(self.node.get(*path), (*self.path, *path), self.taken)

    @property
    def items(self) -> list[Part]:
        """The entries of a list; a single text is a list of one."""
        if isinstance(self.node.value, list):
            entries = enumerate(self.node.value)
            return [Part(one, (*self.path, str(at)), self.taken) for at, one in entries]
        return [self] if isinstance(self.node.value, str) else []

    @property
    def pairs(self) -> list[tuple[str, Part]]:
        """The entries of a table."""
        return [(key, Part(one, (*self.path, key), self.taken)) for key, one in self.node.pairs]

    def __bool__(self) -> bool:
        """Whether there is a value."""
        return bool(self.node)

    def take(self) -> Part:
        """Count everything in it as read."""
        for leaf, _ in _leaves(self.node, self.path):
            self.taken.add(leaf)
        return self

    def left(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Line and path of what was not read; a table of which nothing was read is named as a whole."""
        leaves = [path for path, _ in _leaves(self.node, self.path)]
        unread = [path for path in leaves if path not in self.taken]
        if (
            unread
            and len(unread) == len(leaves)
            and ((self.path and self.path[-1:] != ("0",)) or not self.pairs)
        ):
            yield self.line, self.path
        elif unread:
            for part in [one for _, one in self.pairs] or (self.items if self.is_list else []):
                yield from part.left()


def _leaves(node: Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    if isinstance(node.value, dict) and node.value:
        for key, one in node.value.items():
            yield from _leaves(one, (*path, key))
    elif isinstance(node.value, list) and node.value:
        for at, one in enumerate(node.value):
            yield from _leaves(one, (*path, str(at)))
    elif node is not NOTHING:
        yield path, node.line
