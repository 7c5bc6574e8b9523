"""YAML with the line of every value: texts as they stand, since types are the reader's matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.profile.importers.origin import Origin


@dataclass(frozen=True)
class Node:
    """A value: a table, a list, a text, or None.

    Args:
        value: tables and lists of nodes; numbers and switches as the text that stands there.
        plain: the value as YAML types it.
        line: where it begins.
    """

    value: dict[str, Node] | list[Node] | str | None
    plain: Any
    line: int

    def get(self, *path: str) -> Node:
        """The value at a path of keys; NOTHING where there is none."""
        found = self
        for key in path:
            found = found.value.get(key, NOTHING) if isinstance(found.value, dict) else NOTHING
        return found

    @property
    def text(self) -> str:
        """The text, empty for everything else."""
        return self.value if isinstance(self.value, str) else ""

    @property
    def items(self) -> list[Node]:
        """The entries of a list; a single text is a list of one."""
        if isinstance(self.value, list):
            return self.value
        return [self] if isinstance(self.value, str) else []

    @property
    def pairs(self) -> list[tuple[str, Node]]:
        """The entries of a table."""
        return list(self.value.items()) if isinstance(self.value, dict) else []

    def __bool__(self) -> bool:
        """Whether there is a value."""
        return self.value is not None


NOTHING = Node(None, None, 0)


def documents(origin: Origin) -> list[Node]:
    """The documents of a YAML text. Raises ImportProblem with the line of what is no YAML."""
    loader = yaml.SafeLoader(origin.text)
    try:
        nodes = list(_composed(loader))
        return [_node(node, loader, origin) for node in nodes]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        problem = (error.problem or "it cannot be read").strip()
        if "'\\t'" in problem:
            raise origin.problem(
                line, "not YAML: a tab stands where spaces belong", "replace tabs by spaces"
            ) from error
        fix = "check the indentation of this line and the one above it"
        raise origin.problem(line, f"not YAML: {problem}", fix) from error
    except yaml.YAMLError as error:
        raise origin.problem(0, f"not YAML: {error}", "save it as UTF-8 text") from error
    finally:
        loader.dispose()


def _composed(loader: yaml.SafeLoader) -> Iterator[yaml.Node]:
    while loader.check_node():
        found = loader.get_node()
        if found is not None:
            yield found


def _node(node: yaml.Node, loader: yaml.SafeLoader, origin: Origin) -> Node:
    line = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        _no_repeats(node, origin)
        loader.flatten_mapping(node)
        table = {str(key.value): _node(value, loader, origin) for key, value in node.value}
        return Node(table, {key: one.plain for key, one in table.items()}, line)
    if isinstance(node, yaml.SequenceNode):
        entries = [_node(one, loader, origin) for one in node.value]
        return Node(entries, [one.plain for one in entries], line)
    plain = loader.construct_object(node)
    return Node(None if plain is None else str(node.value), plain, line)


def _no_repeats(node: yaml.MappingNode, origin: Origin) -> None:
    seen: dict[str, int] = {}
    for key, _ in node.value:
        name, line = str(key.value), key.start_mark.line + 1
        if name in seen and name != "<<":
            raise origin.problem(line, f"{name} is given twice (first in line {seen[name]})", "keep one")
        seen[name] = line
