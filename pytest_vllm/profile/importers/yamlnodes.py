"""YAML with the line of every value: texts as they stand, since types are the reader's matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
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


#: Levels of tables and lists, nodes with aliases written out, documents, and aliases of a text.
DEEPEST, MOST, DOCUMENTS, ALIASES = 60, 100_000, 1_000, 2_000
_FAST = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def documents(origin: Origin) -> list[Node]:
    """The documents of a YAML text, each node its own even where an alias repeats it.

    Raises ImportProblem with the line of what is not YAML, or is nested too deep or grows too large.
    """
    try:
        _within_limits(origin)
        return _read(origin, _FAST(origin.text))
    except yaml.YAMLError:
        pass  # libyaml's words differ from those below, which people find when they search for them
    try:
        return _read(origin, yaml.SafeLoader(origin.text))
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
    except RecursionError as error:
        what = f"nested more than {DEEPEST} deep"
        raise origin.problem(0, what, "give the part of it that starts vLLM") from error
    except (yaml.YAMLError, ValueError) as error:
        raise origin.problem(0, f"not YAML: {error}", "save it as UTF-8 text") from error


def _within_limits(origin: Origin) -> None:
    """Go through the text's events, which takes no memory, before anything is built from it."""
    level = count = aliases = 0
    for event in yaml.parse(origin.text, Loader=_FAST):
        level += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        count += isinstance(event, yaml.NodeEvent)
        aliases += isinstance(event, yaml.AliasEvent)
        wrong = (
            f"nested more than {DEEPEST} deep"
            if level > DEEPEST
            else f"more than {MOST:,} values"
            if count > MOST
            else f"more than {ALIASES:,} aliases"
            if aliases > ALIASES
            else ""
        )
        if wrong:
            line = event.start_mark.line + 1 if event.start_mark else 0
            raise origin.problem(line, wrong, "give the part of it that starts vLLM")


def _read(origin: Origin, loader: yaml.SafeLoader) -> list[Node]:
    reader = _Nodes(origin, loader)
    found: list[Node] = []
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                found.append(reader.node(node))
            if len(found) > DOCUMENTS:
                raise origin.problem(0, f"more than {DOCUMENTS:,} documents", "give the one that starts vLLM")
    finally:
        loader.dispose()
    return found


class _Nodes:
    """Builds nodes, and counts them: aliases may make many of a few."""

    def __init__(self, origin: Origin, loader: yaml.SafeLoader) -> None:
        self.origin, self.loader = origin, loader
        self.count = 0
        self.open: set[int] = set()

    def node(self, node: yaml.Node) -> Node:
        """A value and what it holds. Raises ImportProblem for one that holds itself."""
        line = node.start_mark.line + 1
        self.count += 1
        if id(node) in self.open or len(self.open) > DEEPEST:
            raise self.origin.problem(line, "an anchor holds itself", "write out what is meant")
        if self.count > MOST:
            fix = "write out the part that starts vLLM"
            raise self.origin.problem(line, f"aliases make more than {MOST:,} values of it", fix)
        self.open.add(id(node))
        found = self._built(node, line)
        self.open.discard(id(node))
        return found

    def _built(self, node: yaml.Node, line: int) -> Node:
        if isinstance(node, yaml.MappingNode):
            table = self._table(node)
            return Node(table, {key: one.plain for key, one in table.items()}, line)
        if isinstance(node, yaml.SequenceNode):
            entries = [self.node(one) for one in node.value]
            return Node(entries, [one.plain for one in entries], line)
        plain = _scalar(self.loader, node)
        return Node(None if plain is None else str(node.value), plain, line)

    def _table(self, node: yaml.MappingNode) -> dict[str, Node]:
        """Own keys over merged ones; of several merged tables the first counts."""
        seen: dict[str, int] = {}
        merged: dict[str, Node] = {}
        table: dict[str, Node] = {}
        for key, value in node.value:
            name, line = self._key(key), key.start_mark.line + 1
            if key.tag == "tag:yaml.org,2002:merge":
                for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if not isinstance(source, yaml.MappingNode):
                        raise self.origin.problem(
                            line, "<< merges what is not a table", "name an anchor of one"
                        )
                    merged = dict(self.node(source).pairs) | merged
                continue
            if name in seen:
                problem = f"{name} is given twice (first in line {seen[name]})"
                raise self.origin.problem(line, problem, "keep one")
            seen[name] = line
            table[name] = self.node(value)
        return merged | table

    def _key(self, key: yaml.Node) -> str:
        if not isinstance(key, yaml.ScalarNode):
            raise self.origin.problem(
                key.start_mark.line + 1,
                "a list or a table stands where a key belongs",
                "quote it, or render the template first",
            )
        return str(key.value)


def _scalar(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    """A value as YAML types it; the text where its type is a program's own, or its value is none."""
    if not node.tag.startswith("tag:yaml.org,2002:"):
        return str(node.value)
    try:
        return loader.construct_object(node)
    except (ValueError, OverflowError):
        return str(node.value)
