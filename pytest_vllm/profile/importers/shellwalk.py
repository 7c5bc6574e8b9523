"""A walk through a shell script: what was met on the way, and what of the script nothing has come to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.shellexpand import Expander
from pytest_vllm.profile.importers.shelltree import leaves
from pytest_vllm.profile.importers.shellvalue import Remark, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Node

    from pytest_vllm.profile.importers.origin import Origin
    from pytest_vllm.profile.importers.shellfiles import Written
    from pytest_vllm.profile.importers.shellprefix import Prefix
    from pytest_vllm.profile.importers.shellstate import State
    from pytest_vllm.profile.importers.shelltree import Script

DEEPEST = 12
#: Statements that are followed at most: functions that call each other in branches go through many.
_STATEMENTS = 40_000


@dataclass(frozen=True)
class Start:
    """A command that starts vLLM, in the state that it is started in.

    Args:
        words: each with its line.
        prefix: what stands before it: variables of its own, `env -i`.
        state: the shell at that moment.
        script: where it stands.
        node: what it is there.
        where: the conditions that it hangs on.
        said: words that were left out because they became nothing.
        arms: the branches that it stands in: which, and in which of their arms.
    """

    words: list[tuple[Value, int]]
    prefix: Prefix
    state: State
    script: Script
    node: Node
    where: tuple[str, ...]
    said: tuple[Remark, ...]
    arms: tuple[tuple[int, int], ...] = ()

    @property
    def texts(self) -> list[str]:
        """The words alone."""
        return [value.text for value, _ in self.words]

    @property
    def line(self) -> int:
        """Where it begins."""
        return self.words[0][1]


_SETS = re.compile(
    r"([A-Za-z_]\w*)\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)|([A-Za-z_]\w*)(?:\+\+|--)|(?:\+\+|--)([A-Za-z_]\w*)"
)


class Walk:
    """One script, and the state of its shell."""

    def __init__(self, origin: Origin, script: Script, state: State) -> None:
        """Begin in a state."""
        self.origin, self.script, self.state = origin, script, state
        self.starts: list[Start] = []
        self.others: list[tuple[int, str]] = []
        self.idle: list[tuple[int, str]] = []
        self.notes: list[Remark] = []
        self.defined: dict[str, int] = {}
        self.assigned: dict[tuple[int, int], tuple[int, str]] = {}
        self._claimed: list[tuple[Script, int, int]] = []
        self._where: list[str] = []
        self._path: list[tuple[int, int]] = []
        self.taken: dict[int, int] = {}
        self._called: set[str] = set()
        self._scopes: list[dict[str, tuple[Value | tuple[Value, ...] | None, bool]]] = []
        self._depth = 0
        self._inherited = Value()
        self._visited = 0
        self.written: dict[str, list[Written]] = {}
        #: Conditions that the chosen command hangs on, as they are written: they hold everywhere.
        self.assumed: frozenset[str] = frozenset()

    def left(self) -> list[tuple[int, str]]:
        """What nothing has come to: line and text of every part of the script that was not followed."""
        found: dict[int, list[str]] = {}
        spans = sorted((start, end) for script, start, end in self._claimed if script is self.script)
        reach, at = 0, 0
        for leaf in leaves(self.script.root):
            while at < len(spans) and spans[at][0] <= leaf.start_byte:
                reach, at = max(reach, spans[at][1]), at + 1
            if leaf.end_byte > reach:
                found.setdefault(self.script.line(leaf), []).append(self.script.shown(leaf))
        return [(line, " ".join(words)) for line, words in found.items()]

    def visit_all(self, found: list[Node]) -> None:
        """Statements one behind the other."""
        for node in found:
            if node.is_named:
                self.visit(node)

    def visit(self, node: Node) -> None:
        """One statement. Raises ImportProblem where a script goes through more than can be followed."""
        self._visited += 1
        if self._visited > _STATEMENTS:
            what = f"the script goes through more than {_STATEMENTS:,} statements, in loops and functions"
            raise self.origin.problem(self.script.line(node), what, "give the vllm serve line that it runs")
        way: Callable[[Node], None] | None = getattr(self, f"_{node.type}", None)
        if way is not None:
            way(node)
        elif node.type not in ("comment", "ERROR"):
            self.visit_all(node.children)

    def claim(self, node: Node) -> None:
        """Account for everything in a node."""
        self._claimed.append((self.script, node.start_byte, node.end_byte))

    def set_outside(self, name: str, line: int, why: str) -> None:
        """A variable whose value an importer does not know."""
        remark = Remark(line, f"${name} {why} (line {line}); write its value in its place", fatal=True)
        self.state.assign(name, Value("", (remark,), outside=True))

    def expand(self) -> Expander:
        """Words in the state of now."""
        return Expander(self.script, self.state)

    def _inside(self, script: Script, state: State, arguments: tuple[Value, ...], text: Value) -> None:
        """A script within the script, from a text; what it sets stays in it."""
        if self._depth >= DEEPEST:
            return
        state.arguments = arguments
        outer, self.script = self.script, script
        before, self.state = self.state, state
        inherited, self._inherited = self._inherited, self._inherited + text.cut("")
        self._depth += 1
        self.visit_all(script.root.children)
        self.notes += [Remark(line, f"`{text}` is not understood") for line, text in self.left()]
        self._depth -= 1
        self.script, self.state, self._inherited = outer, before, inherited


def names_set(arithmetic: str) -> list[str]:
    """The names that an arithmetic expression sets: `X = 2`, `X += 1`, `X++`."""
    found = _SETS.findall(arithmetic)
    return [name for names in found for name in names if name]
