"""A shell script followed in the order of execution, without running anything.

Commands that start vLLM are collected with the state that they are started in. A branch that hangs on what the
script does not say is followed both ways; what differs behind it is said when it is used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.shellarms import Arm, merged
from pytest_vllm.profile.importers.shellexpand import Expander
from pytest_vllm.profile.importers.shellprefix import Prefix, nested, starts, stripped
from pytest_vllm.profile.importers.shelltest import UNDECIDED, Outcome, outcome
from pytest_vllm.profile.importers.shelltree import Script, leaves, nodes, parsed
from pytest_vllm.profile.importers.shellvalue import Remark, Value, joined

if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Node

    from pytest_vllm.profile.importers.origin import Origin
    from pytest_vllm.profile.importers.shellstate import State

_MANY = 8
_DEEPEST = 12
_LARGEST = 256 * 1024
#: Commands that start nothing and set nothing that a server would see.
_IDLE = frozenset(
    """: [ alias chmod chown curl date declare df dirname echo eval exit export free grep hostname kill killall let
    ls mkdir module nc nvidia-smi pgrep pkill popd printf ps pushd pwd read readonly return rm set shift shopt sleep
    ss tail tee test touch trap true tput type uname unset until wait wc wget which whoami xargs""".split()
)
_WORDS = ("if", "then", "elif", "else", "fi", "do", "done", "for", "in", "while", "until", "case", "esac", "select")


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
    """

    words: list[tuple[Value, int]]
    prefix: Prefix
    state: State
    script: Script
    node: Node
    where: tuple[str, ...]
    said: tuple[Remark, ...]

    @property
    def texts(self) -> list[str]:
        """The words alone."""
        return [value.text for value, _ in self.words]

    @property
    def line(self) -> int:
        """Where it begins."""
        return self.words[0][1]


class Run:
    """One script, followed."""

    def __init__(self, origin: Origin, script: Script, state: State) -> None:
        """Begin in a state."""
        self.origin, self.script, self.state = origin, script, state
        self.starts: list[Start] = []
        self.others: list[tuple[int, str]] = []
        self.idle: list[tuple[int, str]] = []
        self.notes: list[Remark] = []
        self.assigned: dict[tuple[int, int], tuple[int, str]] = {}
        self._claimed: list[tuple[int, int, int]] = []
        self._where: list[str] = []
        self._called: set[str] = set()
        self._depth = 0

    def follow(self) -> Run:
        """The whole script, and then the functions that nobody called."""
        self.visit_all(self.script.root.children)
        for name, (script, body) in list(self.state.functions.items()):
            if name not in self._called and re.search(r"vllm|docker|podman", script.text(body)):
                self._where.append(f"{name}() is called")
                before, self.state = self.state, self.state.copy()
                self._call(name, (), script, body)
                self.state = before
                self._where.pop()
        return self

    def left(self) -> list[tuple[int, str]]:
        """What nothing has come to: line and text of every part of the script that was not followed."""
        found: dict[int, list[str]] = {}
        own = id(self.script)
        spans = sorted((start, end) for script, start, end in self._claimed if script == own)
        for leaf in leaves(self.script.root):
            if not any(start <= leaf.start_byte and leaf.end_byte <= end for start, end in spans):
                found.setdefault(self.script.line(leaf), []).append(self.script.shown(leaf))
        return [(line, " ".join(words)) for line, words in found.items()]

    def visit_all(self, found: list[Node]) -> None:
        """Statements one behind the other."""
        for node in found:
            if node.is_named:
                self.visit(node)

    def visit(self, node: Node) -> None:
        """One statement."""
        way: Callable[[Node], None] | None = getattr(self, f"_{node.type}", None)
        if way is not None:
            way(node)
        elif node.type not in ("comment", "ERROR"):
            self.visit_all(node.children)

    def claim(self, node: Node) -> None:
        """Account for everything in a node."""
        self._claimed.append((id(self.script), node.start_byte, node.end_byte))

    def expand(self) -> Expander:
        """Words in the state of now."""
        return Expander(self.script, self.state)

    # statements

    def _variable_assignment(self, node: Node) -> None:
        self._assign(node)

    def _assign(self, node: Node, *, export: bool = False) -> None:
        self.claim(node)
        target, value = node.children[0], node.children[2] if len(node.children) > 2 else None
        adds = self.script.text(node.children[1]) == "+="
        name, index = self.expand()._name(target)
        key = (id(self.script), node.start_byte)
        self.assigned[key] = (self.script.line(node), name)
        expander = self.expand()
        if value is not None and value.type == "array":
            items = [one for child in value.children if child.is_named for one in self._item(child)]
            before = self.state.several(name) if adds else ()
            self.state.assign(name, tuple(before) + tuple(self._used(one, key) for one in items), export=export)
            return
        from pytest_vllm.profile.secrets import secret_name  # noqa: PLC0415

        given = Value() if value is None else expander.text(value, secret=secret_name(name))
        if value is None and name in self.state.outer and not export:
            given = Value()
        given = self._used(given, key)
        known = self.state.values.get(name)
        if index:
            line = self.script.line(node)
            text = f"{name}[{index}] is set by its index, which an importer does not follow"
            self.state.assign(name, Value("", (Remark(line, text, fatal=True),), outside=True))
            return
        if adds and isinstance(known, tuple):
            known = (known[0] + given, *known[1:]) if known else (given,)
            self.state.assign(name, known, export=export)
            return
        self.state.assign(name, known + given if adds and isinstance(known, Value) else given, export=export)

    def _item(self, node: Node) -> list[Value]:
        return [] if node.type == "comment" else self.expand().fields(node)

    def _used(self, value: Value, key: tuple[int, int]) -> Value:
        return replace(value, uses=value.uses | {key})

    def _declaration_command(self, node: Node) -> None:
        """`export`, `declare`, `local`, `readonly`."""
        self.claim(node)
        words = [self.script.text(child) for child in node.children]
        flags = "".join(word for word in words[1:] if word.startswith("-"))
        export = (words[0] == "export" and "n" not in flags) or "x" in flags
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                self._assign(child, export=export)
            elif child.type in ("variable_name", "word") and not self.script.text(child).startswith("-"):
                name = self.script.text(child)
                if words[0] == "export" and "n" in flags:
                    self.state.exported.discard(name)
                elif export:
                    self.state.exported.add(name)
            elif child.is_named and child.type != "word":
                text = f"`{self.script.shown(node)}`: which variables that sets is not known"
                self.notes.append(Remark(self.script.line(node), text))

    def _unset_command(self, node: Node) -> None:
        self.claim(node)
        for child in node.children[1:]:
            self.state.values.pop(self.script.text(child), None)
            self.state.exported.discard(self.script.text(child))

    def _function_definition(self, node: Node) -> None:
        self.claim(node)
        name, body = self.script.text(next(one for one in node.children if one.type == "word")), node.children[-1]
        self.state.functions[name] = (self.script, body)

    def _subshell(self, node: Node) -> None:
        before, self.state = self.state, self.state.copy()
        self.visit_all(node.children)
        self.state = before

    def _pipeline(self, node: Node) -> None:
        for child in node.children:
            if child.is_named:
                before, self.state = self.state, self.state.copy()
                self.visit(child)
                self.state = before

    def _redirected_statement(self, node: Node) -> None:
        body, *redirects = [child for child in node.children if child.is_named]
        text = ""
        for one in redirects:
            self.claim(one)
            for inner in one.children:
                if inner.type == "heredoc_body":
                    text = "\n" * 0 + self._heredoc(one, inner)
                elif inner.type in ("pipeline", "list", "command") and one.type == "heredoc_redirect":
                    self.visit(inner)
        if text and body.type == "command" and self._is_shell(body):
            self.claim(body)
            inner = parsed(text, self.origin, self._first_of(redirects))
            self._inside(inner, self._child(), ())
            return
        self.visit(body)

    def _heredoc(self, redirect: Node, body: Node) -> str:
        start = next((self.script.text(one) for one in redirect.children if one.type == "heredoc_start"), "")
        if start[:1] in "'\"\\" or not any(one.is_named for one in body.children):
            return self.script.text(body)
        return joined([part.value for part in self.expand()._sequence(body, True, False)], "").text

    def _first_of(self, redirects: list[Node]) -> int:
        found = [one for each in redirects for one in nodes(each) if one.type == "heredoc_body"]
        return self.script.line(found[0]) if found else 1

    def _is_shell(self, node: Node) -> bool:
        words = [value.text for value, _ in self.expand().words([one for one in node.children if one.is_named])]
        words = [word for word in stripped([(Value(word), 0) for word in words])[0] for word in [word[0].text]]
        return bool(words) and re.fullmatch(r"(?:.*/)?(?:ba|da|z)?sh", words[0]) is not None

    def _list(self, node: Node) -> None:
        """`A && B`, `A || B`. Whatever is no test is taken to succeed."""
        left, operator, right = [child for child in node.children if child.type != "comment"][:3]
        follows = operator.type == "&&"
        self.visit(left)
        found = outcome(left, self.expand()) if left.type in ("test_command", "negated_command", "command") else UNDECIDED
        if left.type == "command" and found == UNDECIDED or left.type not in ("test_command", "negated_command", "command"):
            if follows:
                self.visit(right)
                return
            found = Outcome(True, outside=True)
        found = found if follows else found.inverse()
        self._arms([Arm(found, self.script.shown(left), self.script.line(left), [right])], right)

    def _test_command(self, node: Node) -> None:
        self.claim(node)

    def _negated_command(self, node: Node) -> None:
        self.claim(node)

    def _if_statement(self, node: Node) -> None:
        arms: list[Arm] = []
        for clause in [node, *[one for one in node.children if one.type in ("elif_clause", "else_clause")]]:
            inner = [one for one in clause.children if one.type not in ("elif_clause", "else_clause", "comment")]
            if clause.type == "else_clause":
                arms.append(Arm(Outcome(True, outside=False), "otherwise", self.script.line(clause), inner))
                continue
            at = next(place for place, one in enumerate(inner) if one.type == "then")
            conditions = [one for one in inner[:at] if one.is_named]
            for one in conditions:
                self._condition(one)
            shown = self.script.shown(conditions[-1]) if conditions else ""
            found = outcome(conditions[-1], self.expand()) if conditions else UNDECIDED
            arms.append(Arm(found, shown, self.script.line(clause), inner[at:]))
        self._arms(arms, node)

    def _condition(self, node: Node) -> None:
        """A condition is accounted for; what it names is not started."""
        self.claim(node)

    def _case_statement(self, node: Node) -> None:
        subject = next(one for one in node.children if one.is_named)
        self.claim(subject)
        value, arms = self.expand().text(subject), []
        shown, line = self.script.shown(subject), self.script.line(node)
        for item in [one for one in node.children if one.type == "case_item"]:
            at = next(place for place, one in enumerate(item.children) if one.type == ")")
            patterns = [one for one in item.children[:at] if one.is_named]
            for one in patterns:
                self.claim(one)
            texts = [self.script.text(one).strip("\"'") for one in patterns]
            truth = any(_matches(value.text, text) for text in texts)
            found = Outcome(None if value.literal else truth, value.outside)
            if texts == ["*"]:
                found = Outcome(True, outside=False)
            arms.append(Arm(found, f"{shown} is {'|'.join(texts)}", line, item.children[at:]))
        self._arms(arms, node)

    def _arms(self, arms: list[Arm], node: Node) -> None:
        """Every arm that may be taken, each from the same state; then the one that is."""
        before, ways, open_ = self.state, [], True
        for arm in arms:
            if not open_ or (arm.found.truth is False and not arm.found.outside):
                for one in arm.body:
                    self.claim(one)
                self.idle.append((arm.line, f"what is never reached, by `{arm.shown}`"))
                continue
            self.state = before.copy()
            hangs = arm.found.outside or bool(ways)
            self._where += [f"{arm.shown} (line {arm.line})"] if hangs else []
            self.visit_all(arm.body)
            self._where = self._where[:-1] if hangs else self._where
            ways.append((arm, self.state))
            open_ = not (arm.found.truth is True and not arm.found.outside)
        if open_:
            rest = Arm(Outcome(True, outside=False), "otherwise", self.script.line(node), [])
            ways.append((rest, before.copy()))
        self.state = before
        before.become(merged(ways))

    def _for_statement(self, node: Node) -> None:
        name = next(self.script.text(one) for one in node.children if one.type == "variable_name")
        body = node.children[-1]
        listed = [one for one in node.children if one.is_named and one not in (body,) and one.type != "variable_name"]
        if listed and listed[0].type == "variable_name":
            listed = listed[1:]
        for one in node.children[:-1]:
            self.claim(one)
        values = [value for one in listed for value in self._numbers(one)]
        if not listed and "in" not in [self.script.text(one) for one in node.children]:
            values = list(self.state.arguments)
        line = self.script.line(node)
        if not values or len(values) > _MANY or any(one.literal for one in values):
            text = f"${name} runs over what an importer does not follow (line {line}); write one value in its place"
            values = [Value("", (Remark(line, text, fatal=True),), outside=True)]
        for value in values:
            self.state.assign(name, value)
            self.visit(body)

    def _numbers(self, node: Node) -> list[Value]:
        found = re.fullmatch(r"\{(\d+)\.\.(\d+)\}", self.script.text(node))
        counted = re.fullmatch(r"\$\(seq (?:(\d+) )?(\d+)\)", self.script.text(node))
        if not found and not counted:
            return self.expand().fields(node)
        first, last = (int(found[1]), int(found[2])) if found else (int((counted or [0, 1])[1] or 1), int((counted or "0")[2]))
        return [Value(str(one)) for one in range(first, min(last, first + _MANY) + 1)]

    def _c_style_for_statement(self, node: Node) -> None:
        """A loop that counts: its body is followed once, its variables are not known."""
        line = self.script.line(node)
        for one in node.children[:-1]:
            self.claim(one)
            for inner in nodes(one):
                if inner.type == "variable_assignment":
                    name = self.script.text(inner.children[0])
                    text = f"${name} counts in a loop (line {line}); write one value in its place"
                    self.state.assign(name, Value("", (Remark(line, text, fatal=True),), outside=True))
        self.visit(node.children[-1])

    def _while_statement(self, node: Node) -> None:
        inner = [one for one in node.children if one.is_named]
        for one in inner[:-1]:
            self._condition(one)
        found = outcome(inner[0], self.expand()) if inner[:-1] else UNDECIDED
        if node.children[0].type == "until":
            found = found.inverse()
        if self.script.text(inner[0]).split()[:1] == ["read"]:
            found = UNDECIDED
        body = inner[-1]
        self._arms([Arm(found, self.script.shown(inner[0]), self.script.line(node), [body])], node)

    def _command(self, node: Node) -> None:
        self.claim(node)
        expander = self.expand()
        self.state.dropped = []
        parts = [one for one in node.children if one.is_named and "redirect" not in one.type]
        own = [one for one in parts if one.type == "variable_assignment"]
        rest = [one for one in parts if one.type != "variable_assignment"]
        words = expander.words(rest)
        prefix = Prefix({})
        for one in own:
            name = self.script.text(one.children[0])
            value = one.children[2] if len(one.children) > 2 else None
            from pytest_vllm.profile.secrets import secret_name  # noqa: PLC0415

            given = Value() if value is None else expander.text(value, secret=secret_name(name))
            prefix.env[name] = (given, self.script.line(one))
        words, more = stripped(words)
        prefix = prefix.and_(more)
        if not words:
            return
        self._started(node, words, prefix)

    def _started(self, node: Node, words: list[tuple[Value, int]], prefix: Prefix) -> None:
        name, line = words[0][0].text, self.script.line(node)
        built_in = getattr(self, f"_do_{name.replace('.', 'source')}", None)
        if name in self.state.functions:
            script, body = self.state.functions[name]
            self._called.add(name)
            self._call(name, tuple(value for value, _ in words[1:]), script, body)
        elif built_in is not None:
            built_in(node, words)
        elif starts([value.text for value, _ in words]):
            said = tuple(self.state.dropped)
            where = tuple(self._where)
            self.starts.append(Start(words, prefix, self.state.copy(), self.script, node, where, said))
        elif (inner := nested([value for value, _ in words])) is not None:
            value, arguments = inner
            script = parsed(value.text, self.origin, words[-1][1] if len(words) < 3 else words[2][1])
            script = replace(script, at=line) if "\n" not in value.text else script
            self._inside(script, self._child(prefix), arguments)
        elif name in _IDLE:
            self.idle.append((line, f"`{name}`"))
        else:
            self.others.append((line, f"`{' '.join(value.text for value, _ in words[:6])}`"))

    def _child(self, prefix: Prefix | None = None) -> State:
        """A shell that this one starts: it sees what is exported."""
        seen = self.state.copy()
        if prefix is not None and prefix.cleared:
            seen.values, seen.exported, seen.outer = {}, set(), {}
        seen.values = {name: value for name, value in seen.values.items() if name in seen.exported}
        for name, (value, _) in (prefix.env if prefix else {}).items():
            seen.assign(name, value, export=True)
        return seen

    def _inside(self, script: Script, state: State, arguments: tuple[Value, ...]) -> None:
        """A script within the script; what it sets stays in it."""
        if self._depth >= _DEEPEST:
            return
        state.arguments = arguments
        outer, self.script = self.script, script
        before, self.state = self.state, state
        self._depth += 1
        self.visit_all(script.root.children)
        self.notes += [Remark(line, f"`{text}` is not understood") for line, text in self.left()]
        self._depth -= 1
        self.script, self.state = outer, before

    def _call(self, name: str, arguments: tuple[Value, ...], script: Script, body: Node) -> None:
        """A function: its own arguments, the same variables."""
        if self._depth >= _DEEPEST:
            self.notes.append(Remark(script.line(body), f"{name}() calls itself: it is not followed further"))
            return
        outer, self.script = self.script, script
        before = (self.state.arguments, self.state.called, self.state.ended)
        self.state.arguments, self.state.called = arguments, True
        self._depth += 1
        self.visit(body)
        self._depth -= 1
        self.state.arguments, self.state.called, self.state.ended = before
        self.script = outer

    # built-in commands

    def _do_set(self, node: Node, words: list[tuple[Value, int]]) -> None:
        texts = [value.text for value, _ in words[1:]]
        if texts[:1] == ["--"]:
            self.state.arguments = tuple(value for value, _ in words[2:])
        joined_ = " ".join(texts)
        if re.search(r"(?:^|\s)-\w*a|-o allexport", joined_):
            self.state.everything = True
        elif re.search(r"(?:^|\s)\+\w*a|\+o allexport", joined_):
            self.state.everything = False
        self.idle.append((self.script.line(node), "`set`"))

    def _do_shift(self, node: Node, words: list[tuple[Value, int]]) -> None:
        count = int(words[1][0].text) if len(words) > 1 and words[1][0].text.isdigit() else 1
        self.state.arguments = self.state.arguments[count:]
        self.idle.append((self.script.line(node), "`shift`"))

    def _do_exit(self, node: Node, words: list[tuple[Value, int]]) -> None:
        self.state.ended = True
        self.idle.append((self.script.line(node), f"`{words[0][0].text}`"))

    _do_return = _do_exit

    def _do_read(self, node: Node, words: list[tuple[Value, int]]) -> None:
        line = self.script.line(node)
        for value, _ in words[1:]:
            if re.fullmatch(r"[A-Za-z_]\w*", value.text):
                text = f"${value.text} is read when the script runs (line {line}); write its value in its place"
                self.state.assign(value.text, Value("", (Remark(line, text, fatal=True),), outside=True))
        self.idle.append((line, "`read`"))

    def _do_eval(self, node: Node, words: list[tuple[Value, int]]) -> None:
        whole = joined([value for value, _ in words[1:]])
        if whole.literal:
            text = f"`{self.script.shown(node)}` is run by the shell, not by an importer"
            self.notes.append(Remark(self.script.line(node), text))
            return
        script = replace(parsed(whole.text, self.origin), at=self.script.line(node))
        state = self.state
        self._inside(script, state, state.arguments)

    def _do_cd(self, node: Node, words: list[tuple[Value, int]]) -> None:
        line, target = self.script.line(node), words[1][0] if len(words) > 1 else Value(self.state.home)
        self.state.folder = self.state.folder / target.text
        self.others.append((line, f"`cd {target.text}` (the gate starts the server in a folder of its own)"))

    _do_pushd = _do_cd

    def _do_source(self, node: Node, words: list[tuple[Value, int]]) -> None:
        """`source FILE`: its assignments count, where the file is there."""
        line, target = self.script.line(node), words[1][0] if len(words) > 1 else Value()
        path = self.state.folder / Path(target.text.replace("~", self.state.home, 1) if target.text[:1] == "~" else target.text)
        shown = f"`{self.script.shown(node)}`"
        if path.name.startswith("activate"):
            self.others.append((line, f"{shown} (the Python environment that `vllm` is taken from)"))
        elif target.unknown or target.literal or self.state.contained or not path.is_file():
            text = f"{shown}: the file is not there, so what it sets is not known"
            self.notes.append(Remark(line, text))
        elif path.stat().st_size > _LARGEST or self._depth >= _DEEPEST:
            self.notes.append(Remark(line, f"{shown}: the file is too large to be followed"))
        else:
            script = replace(parsed(path.read_text("utf-8-sig", "replace"), self.origin), at=line)
            outer, self.script = self.script, script
            self._depth += 1
            self.visit_all(script.root.children)
            self.notes += [Remark(line, f"in {path.name}: `{text}` is not understood") for _, text in self.left()]
            self._depth -= 1
            self.script = outer


def _matches(text: str, pattern: str) -> bool:
    import fnmatch  # noqa: PLC0415

    return fnmatch.fnmatchcase(text, pattern.replace("\\", ""))
