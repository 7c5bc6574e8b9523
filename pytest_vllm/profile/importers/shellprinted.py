"""What a function of a script prints: `X=$(name_of "$Y")`, where all of it can be followed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.shellexpand import Expander
from pytest_vllm.profile.importers.shellvalue import Value, joined
from pytest_vllm.profile.importers.shellwalk import DEEPEST, Walk

if TYPE_CHECKING:
    from tree_sitter import Node

    from pytest_vllm.profile.importers.shellarms import Arm
    from pytest_vllm.profile.importers.shellstate import State
    from pytest_vllm.profile.importers.shelltree import Script

    Words = list[tuple[Value, int]]

#: Commands that print nothing themselves.
_SILENT = frozenset({":", "true", "false", "return", "shift", "set", "unset", "echo", "printf", "exit"})
_FORMATS = {"%s": "", "%s\\n": "\n"}


class Printed(Walk):
    """A script whose functions may be asked for what they print."""

    #: The name that what is printed is kept under; empty while nobody asks.
    _printing = ""
    #: Whether something is printed that is not followed.
    _garbled = False

    def answered(self, name: str, arguments: tuple[Value, ...]) -> Value | None:
        """What a function prints, without the line ends behind it; None where that is not followed."""
        if name not in self.state.functions or self._depth >= DEEPEST:
            return None
        script, body = self.state.functions[name]
        outer, garbled, before = self._printing, self._garbled, self.state
        told = [(one, len(one)) for one in (self.starts, self.others, self.idle, self.notes)]
        self._printing, self._garbled = f"what {name}() prints", False
        self.state = before.copy()
        self.state.assign(self._printing, Value())
        self._called.add(name)
        self._call(name, arguments, script, body)
        said = self.state.values.get(self._printing)
        lost = self._garbled or not isinstance(said, Value)
        loud = any(one.strip("`") not in _SILENT for _, one in self.idle[told[2][1] :] if one[:1] == "`")
        lost |= loud or any(len(one) > length for one, length in told[:2])
        self._printing, self._garbled, self.state = outer, garbled, before
        for one, length in told:
            del one[length:]
        return None if lost or not isinstance(said, Value) else said.cut(said.text.rstrip("\n"))

    def _do_echo(self, node: Node, words: Words) -> None:
        values = [value for value, _ in words[1:]]
        ends = "\n"
        while values and re.fullmatch(r"-[neE]+", values[0].text):
            ends = "" if "n" in values[0].text else ends
            self._garbled |= "e" in values[0].text and any("\\" in one.text for one in values)
            values = values[1:]
        self.print_(joined(values) + Value(ends))
        self.idle.append((self.script.line(node), "`echo`"))

    def print_(self, value: Value) -> None:
        """Something is printed."""
        known = self.state.values.get(self._printing) if self._printing else None
        if isinstance(known, Value):
            self.state.assign(self._printing, known + value)

    def printed_by_format(self, words: Words) -> None:
        """`printf '%s' X`; other formats are not followed."""
        values = [value for value, _ in words[1:]]
        if len(values) == 2 and values[0].text in _FORMATS:
            self.print_(values[1] + Value(_FORMATS[values[0].text]))
        else:
            self._garbled |= bool(self._printing)

    def not_followed(self) -> None:
        """What is printed now is not followed."""
        self._garbled |= bool(self._printing)

    def ends_in_between(self, ways: list[tuple[Arm, State]]) -> None:
        """Of a branch that is not decided, a way that returns early prints what the others do not."""
        self._garbled |= bool(self._printing) and len(ways) > 1 and any(state.ended for _, state in ways)

    def elsewhere(self, redirects: list[Node]) -> bool:
        """Whether what a command prints goes to a file, or to where errors go."""
        return any(re.match(r"1?>|&>", self.script.text(one)) for one in redirects)

    def visit_all(self, found: list[Node]) -> None:
        """Statements one behind the other; behind its return a function prints nothing."""
        for node in found:
            if node.is_named and not (self._printing and self.state.ended):
                self.visit(node)

    def expand(self) -> Expander:
        """Words in the state of now, those included that functions print."""
        return Expander(self.script, self.state, self.answered)

    def _call(self, name: str, arguments: tuple[Value, ...], script: Script, body: Node) -> None:
        raise NotImplementedError
