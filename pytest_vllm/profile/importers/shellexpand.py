"""What the words of a shell become: names, defaults, arrays, arguments; no command is run."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.marks import secret_mark, unrun
from pytest_vllm.profile.importers.shellarithmetic import whole_sum
from pytest_vllm.profile.importers.shelltree import here
from pytest_vllm.profile.importers.shellvalue import LEFT_EMPTY, Part, Remark, Value, fields, joined
from pytest_vllm.profile.secrets import secret_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tree_sitter import Node

    from pytest_vllm.profile.importers.shellstate import State
    from pytest_vllm.profile.importers.shelltree import Script

    Answer = Callable[[str, tuple[Value, ...]], Value | None]

_NAMED = re.compile(r"[\"']?(?:--?)?([A-Za-z_][\w-]*)=")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_OPERATOR = re.compile(r":?[-=?+]|##?|%%?|//?|\^\^?|,,?|:|@")
#: Braces outside of quotes and of `${…}` that bash makes several words of.
_BRACES = re.compile(r"(?<![$\\])\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}")
_QUOTED = re.compile(r"""\$?'[^']*'|"(?:\\.|[^"\\])*"|\\.|\$\{[^}]*\}|\$\([^)]*\)""", re.DOTALL)
_QUOTES = ("string", "raw_string", "ansi_c_string", "command_substitution")
#: A whole array, or all arguments: empty is the same as not set.
_WHOLE = re.compile(r"\$\{(?:\w+\[[@*]\]|[@*])")
_NOT_WORKED_OUT = "is not worked out by an importer"
_BARE = ("word", "concatenation", "brace_expression", "command_name")
_PURE = ("pwd", "dirname", "basename", "realpath", "readlink", "echo", "printf", "cd", "which", "command")


class Expander:
    """Words of one script in one state."""

    def __init__(self, script: Script, state: State, answer: Answer | None = None) -> None:
        """Keep all; `answer`: what a function of the script prints, None where that is not followed."""
        self.script, self.state, self._functions = script, state, answer

    def words(self, nodes: list[Node]) -> list[tuple[Value, int]]:
        """Every word that the words of a command become, with its line. A key's name stays a name."""
        found: list[tuple[Value, int]] = []
        before = ""
        for node in nodes:
            text = self.script.text(node)
            named = _NAMED.match(text)
            flag = before if before.startswith("-") else ""
            secret = secret_name(named[1] if named else flag)
            found += [(value, self.script.line(node)) for value in self.fields(node, secret=secret)]
            before = text
        return found

    def fields(self, node: Node, *, secret: bool = False) -> list[Value]:
        """The words that one becomes. A whole word whose name is not set is none."""
        if _BRACES.search(_QUOTED.sub("", self.script.text(node))) and node.type in _BARE:
            return [
                self._not_run(node, "is several words to bash, by its braces: quote it, or write them out")
            ]
        parts = list(self.parts(node, secret=secret))
        found = fields(parts)
        lost = [part.value for part in parts if part.value.unknown and not self.state.unset(part.value)]
        if not found and lost:
            return lost[:1]
        if not found:
            for part in parts:
                self.state.dropped += [_empty(one) for one in part.value.remarks]
        return found

    def text(self, node: Node, *, secret: bool = False) -> Value:
        """A word as one text, as in an assignment: nothing is split."""
        return joined([part.value for part in self.parts(node, secret=secret)], "")

    def parts(self, node: Node, *, quoted: bool = False, secret: bool = False) -> Iterator[Part]:
        """The parts of a word."""
        kind, text = node.type, self.script.text(node)
        if kind == "raw_string":
            yield Part(Value(text[1:-1]))
        elif kind == "ansi_c_string":
            yield Part(Value(re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[0]), text[2:-1])))
        elif kind == "string":
            yield from self._string(node, secret)
        elif kind in ("concatenation", "command_name", "herestring_redirect"):
            yield from self.sequence(node, quoted, secret)
        elif kind in ("simple_expansion", "expansion"):
            yield from self._expansion(node, quoted, secret)
        elif kind == "command_substitution":
            called = self._called(node)
            yield Part(called, whole=quoted or called.literal)
        elif kind == "arithmetic_expansion":
            yield Part(self._counted(node), quoted)
        elif kind in ("process_substitution", "ERROR"):
            yield Part(self._not_run(node, "is run by the shell, not by an importer"))
        else:
            yield Part(Value(re.sub(r"\\(\n|.)", lambda one: one[1].strip("\n"), text)))

    def sequence(self, node: Node, quoted: bool, secret: bool) -> Iterator[Part]:
        """What a word, or the text of a here-document, is put together of."""
        at = node.start_byte
        for child in node.children:
            if (begins := self._begins(child) if quoted else child.start_byte) > at:
                between = self.script.source[at:begins].decode("utf-8", "replace")
                yield Part(Value(here(between) if node.type == "heredoc_body" else between))
            if child.type == "heredoc_content":
                yield Part(Value(here(self.script.text(child))))
            else:
                yield from self.parts(child, quoted=quoted, secret=secret)
            at = child.end_byte

    def _string(self, node: Node, secret: bool) -> Iterator[Part]:
        """What stands between double quotes; the grammar leaves blanks between two names out."""
        at, end = node.start_byte + 1, node.end_byte - 1
        inner = [child for child in node.children if child.is_named and child.type != "string_content"]
        if not (
            len(inner) == 1 and (inner[0].start_byte, inner[0].end_byte) == (at, end) and self._none(inner[0])
        ):
            yield Part(Value())
        for child in [*inner, None]:
            upto = self._begins(child) if child is not None else end
            written = self.script.source[at:upto].decode("utf-8", "replace")
            if written:
                yield Part(Value(re.sub(r'\\([$`"\\\n])', lambda one: one[1].strip("\n"), written)))
            if child is not None:
                yield from self.parts(child, quoted=True, secret=secret)
                at = child.end_byte

    def _begins(self, node: Node) -> int:
        """Where a name between quotes begins: the grammar takes the blanks and the line end before it in."""
        if node.type not in ("simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"):
            return int(node.start_byte)
        text = self.script.source[node.start_byte : node.end_byte]
        return int(node.start_byte) + (len(text) - len(re.sub(rb"\A(?:\s|\\\n)+", b"", text)))

    def _none(self, node: Node) -> bool:
        """Whether this is `"$@"`, `"${A[@]:1}"` or `"${A[@]+…}"` of nothing, which is not a word at all."""
        pattern = r"\$(?:@|\{(?:@|\w+\[@\])(?::[ \d:]+|:?\+.*)?\})"
        if re.fullmatch(pattern, self.script.text(node), re.DOTALL) is None:
            return False
        return not list(self._expansion(node, quoted=True, secret=False))

    def _expansion(self, node: Node, quoted: bool, secret: bool) -> Iterator[Part]:
        inner = [child for child in node.children if child.type not in ("$", "${", "}")]
        whole = self.script.text(node).strip()
        prefix = ""
        if inner and inner[0].type in ("!", "#") and len(inner) > 1:
            prefix, inner = inner[0].type, inner[1:]
        if not inner:
            yield Part(self._not_run(node, "is not understood"))
            return
        name, index = self.name(inner[0])
        operator = self.script.text(inner[1]) if len(inner) > 1 else ""
        if prefix or (operator and not _OPERATOR.fullmatch(operator)):
            yield Part(self._special(node, prefix, name, index), quoted)
            return
        several = index in ("@", "*") or name in ("@", "*")
        if several and not (operator and operator[-1] in "-=+?"):
            yield from self._several(name, inner[1:], quoted=quoted, joined_by=index == "*" or name == "*")
            return
        known = self.state.lookup(name, index, self.script.line(node), whole, secret=secret)
        for part in self._operated(node, known, operator, inner[2:], name, quoted=quoted, secret=secret):
            if operator in ("?", ":?") and part.value.unknown and self.state.needed is None:
                self.state.needed = next(one for one in part.value.remarks if one.fatal)
            yield part

    def name(self, node: Node) -> tuple[str, str]:
        """A name, and the index behind it: `A[0]`."""
        if node.type != "subscript":
            return self.script.text(node), ""
        name, *rest = [child for child in node.children if child.is_named]
        index = joined([self.text(one) for one in rest], "").text
        return self.script.text(name), index

    def _several(self, name: str, rest: list[Node], *, quoted: bool, joined_by: bool) -> Iterator[Part]:
        values = list(self.state.several(name))
        if rest and any(one.literal or one.unknown for one in values):
            yield Part(self._not_run(rest[0], _NOT_WORKED_OUT))
        elif rest:
            numbers = [int(text) for one in rest if (text := self.script.text(one)).isdigit()]
            first = max(0, numbers[0] - (name in "@*")) if numbers else 0
            values = values[first : first + numbers[1] if len(numbers) > 1 else None]
        if quoted and joined_by:
            yield Part(joined(values))
            return
        for place, value in enumerate(values):
            if place:
                yield Part(Value(), ends=True)
            yield Part(value, quoted)

    def _operated(
        self,
        node: Node,
        known: Value,
        operator: str,
        rest: list[Node],
        name: str,
        *,
        quoted: bool,
        secret: bool,
    ) -> Iterator[Part]:
        if operator and known.unknown and not self.state.unset(known):
            yield Part(known, quoted)  # whether it is set is not known either
            return
        has = self._has(node, name, known)
        given = known.text != "" if operator.startswith(":") else has
        last = operator[-1:]
        if last in ("-", "=") and operator:
            if given:
                yield Part(known if rest else _optional(known, name), quoted)
                return
            if secret or secret_name(name):
                yield Part(self.state.secret(name, optional=not rest), quoted)
                return
            if not rest:
                yield Part(Value(outside=known.outside), quoted)
            yield from self._default(known, rest, name if last == "=" else "", quoted=quoted)
        elif last == "+":
            for one in rest if given else ():
                yield from self._blank(one)
                within = self._within(one, quoted=quoted, secret=secret)
                yield from (part._replace(value=_optional(part.value, name)) for part in within)
        elif last == "?" and not given:
            words = joined([self.text(one) for one in rest]).text or "it is required"
            what = f"argument ${name} of the script has" if name.isdigit() else f"{name} has"
            remark = Remark(self.script.line(node), f"{what} to be set: {words}", fatal=True)
            yield Part(Value("", (remark,), outside=True), quoted)
        elif operator in ("", "?", ":?"):
            yield Part(known, quoted)
        else:
            yield Part(self._changed(node, known, operator, rest), quoted)

    def _has(self, node: Node, name: str, known: Value) -> bool:
        if _WHOLE.match(self.script.text(node)):
            return bool(self.state.several(name))
        return name in self.state.values or not self.state.unset(known)  # `A=$A` sets A, to whatever it is

    def _within(self, node: Node, *, quoted: bool, secret: bool = False) -> Iterator[Part]:
        """The word behind `:-` or `:+`: it is split at its own blanks, unless either of them is quoted."""
        if node.type == "concatenation" and not quoted:
            for child in node.children:
                yield from self._blank(child)
                yield from self._within(child, quoted=quoted, secret=secret)
            return
        if quoted and node.type == "raw_string":  # single quotes are but signs within double ones
            text = self.script.text(node)
            yield Part(self._not_run(node, _NOT_WORKED_OUT) if "$" in text else Value(text))
            return
        for part in self.parts(node, quoted=quoted, secret=secret):
            yield Part(part.value, part.whole and (quoted or node.type in _QUOTES), part.ends)

    def _blank(self, node: Node) -> Iterator[Part]:
        """The blank before a part of such a word, which the grammar has in no node."""
        if self.script.source[node.start_byte - 1 : node.start_byte].isspace():
            yield Part(Value(" "), whole=False)

    def _default(self, known: Value, rest: list[Node], name: str, *, quoted: bool) -> Iterator[Part]:
        """The word behind `:-`; behind `:=` it becomes the value of the name."""
        found = [part for one in rest for part in (*self._blank(one), *self._within(one, quoted=quoted))]
        given = [replace(part.value, outside=True) if known.outside else part.value for part in found]
        if name:
            self.state.assign(name, joined(given, ""))
        yield from (Part(value, part.whole) for value, part in zip(given, found, strict=True))

    def _changed(self, node: Node, known: Value, operator: str, rest: list[Node]) -> Value:
        """`${X%%/*}`, `${X#v}`, `${X/a/b}`, `${X^^}`, `${X:0:3}`."""
        text, given = known.text, [self.text(one) for one in rest if one.is_named]
        if known.literal or any(one.literal for one in given):
            return self._not_run(node, _NOT_WORKED_OUT) + known.cut("")
        pattern = given[0].text if given else ""
        if operator in ("%", "%%", "#", "##"):
            return known.cut(_trimmed(text, operator, pattern))
        if operator in ("/", "//") and pattern:
            new = given[1].text if len(given) > 1 else ""
            expression = re.compile(fnmatch.translate(pattern).removesuffix(r")\Z").removeprefix("(?s:"))
            return known.cut(expression.sub(lambda _: new, text, count=operator == "/"))
        if operator in ("^^", ",,"):
            return known.cut(text.upper() if operator == "^^" else text.lower())
        if operator == ":" and all(one.text.isdigit() for one in given):
            first, *more = [int(one.text) for one in given]
            return known.cut(text[first : first + more[0] if more else None])
        return self._not_run(node, _NOT_WORKED_OUT)

    def _special(self, node: Node, prefix: str, name: str, index: str) -> Value:
        """`${#X}`, `${#A[@]}`, `${!X}`."""
        if prefix == "#":
            several = index in ("@", "*") or name in ("@", "*")
            known = Value() if several else self.state.lookup(name, index, self.script.line(node), name)
            if several and any(one.unknown for one in self.state.several(name)):
                return joined(self.state.several(name))
            if known.literal or (several and any(one.literal for one in self.state.several(name))):
                return self._not_run(node, _NOT_WORKED_OUT)
            size = len(self.state.several(name)) if several else len(known.text)
            return known.cut(str(size))
        if prefix == "!" and not index:
            pointed = self.state.lookup(name, "", self.script.line(node), self.script.text(node))
            if pointed.text and not pointed.unknown:
                return self.state.lookup(pointed.text, "", self.script.line(node), f"${pointed.text}")
        if prefix == "!" and index in ("@", "*"):
            return Value(" ".join(map(str, range(len(self.state.several(name))))))
        return self._not_run(node, _NOT_WORKED_OUT)

    def _counted(self, node: Node) -> Value:
        """Arithmetic over whole numbers and names."""
        text, used = self.script.text(node)[3:-2], Value()

        def number(found: re.Match[str]) -> str:
            nonlocal used
            known = self.state.lookup(found[1], "", self.script.line(node), f"${found[1]}")
            used += known.cut("")
            return known.text or "0"

        plain = re.sub(r"\$?\{?([A-Za-z_]\w*)\}?", number, text)
        answer = whole_sum(plain)
        if answer is None:
            return self._not_run(node, _NOT_WORKED_OUT)
        return used.cut(str(answer))

    def _called(self, node: Node) -> Value:
        """Of the commands in a word only those are followed that read nothing: `pwd`, `dirname`, `echo`."""
        commands = [child for child in node.children if child.is_named]
        if len(commands) == 1 and (found := self._pure(commands[0]) or self._own(commands[0])) is not None:
            return found
        return self._not_run(node, "is run by the shell, not by an importer")

    def _own(self, node: Node) -> Value | None:
        """What a function of the script prints."""
        if node.type != "command" or self._functions is None:
            return None
        name, *given = [value for value, _ in self.words([one for one in node.children if one.is_named])]
        return self._functions(name.text, tuple(given))

    def _pure(self, node: Node) -> Value | None:
        if node.type == "list":
            left, _, right = node.children
            moved = self._pure(left)
            if moved is None or self.script.text(right) not in ("pwd", "pwd -P"):
                return None
            return moved
        if node.type == "redirected_statement":
            return self._pure(node.children[0])
        if node.type != "command":
            return None
        values = [value for value, _ in self.words([one for one in node.children if one.is_named])]
        name, *given = values
        given = [one for one in given if not re.fullmatch(r"-[a-zA-Z]", one.text)]
        if name.text not in _PURE or any(one.unknown or one.literal for one in given):
            return None
        return self._answer(name.text, given)

    def _answer(self, name: str, given: list[Value]) -> Value | None:
        first = given[0] if given else Value()
        where = str(self.state.folder)
        if name == "pwd":
            return Value(where)
        if name == "echo":
            return joined(given)
        if name == "dirname" and given:
            return first.cut(posixpath.dirname(first.text) or ".")
        if name == "basename" and given:
            base = posixpath.basename(first.text.rstrip("/"))
            return first.cut(base.removesuffix(given[1].text) if len(given) > 1 else base)
        if name in ("which", "command", "realpath", "readlink", "cd") and len(given) == 1:
            found = name in ("which", "command")  # a name is found as its path is
            return first if found else first.cut(posixpath.normpath(posixpath.join(where, first.text)))
        return None

    def _not_run(self, node: Node, why: str) -> Value:
        remark = Remark(self.script.line(node), f"{self.script.shown(node)} {why}")
        return Value(unrun(self.script.text(node).strip()), (remark,), outside=True)


def _optional(value: Value, name: str) -> Value:
    """A value that is there only where a name is set: a secret of that name may be missing."""
    return value.cut(value.text.replace(secret_mark(name), secret_mark(name, optional=True)))


def _empty(remark: Remark) -> Remark:
    """The remark of a name that is not set, where a shell leaves the whole word out."""
    return Remark(remark.line, f"{remark.text.partition(';')[0]}{LEFT_EMPTY}") if remark.fatal else remark


def _trimmed(text: str, operator: str, pattern: str) -> str:
    places = range(len(text) + 1)
    cuts = [text[:at] for at in places if fnmatch.fnmatchcase(text[at:], pattern)]
    if operator.startswith("#"):
        cuts = [text[at:] for at in places if fnmatch.fnmatchcase(text[:at], pattern)]
    if not cuts:
        return text
    return min(cuts, key=len) if len(operator) == 2 else max(cuts, key=len)
