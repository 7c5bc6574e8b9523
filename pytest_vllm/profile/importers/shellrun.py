"""A shell script followed in the order of execution, without running anything.

Commands that start vLLM are collected with the state that they are started in. A branch that hangs on what
the script does not say is followed both ways; what differs behind it is said when it is used.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.shellbranch import Branches
from pytest_vllm.profile.importers.shellbuiltins import BuiltIns
from pytest_vllm.profile.importers.shellprefix import Prefix, nested, starts, stripped
from pytest_vllm.profile.importers.shelltree import nodes, parsed
from pytest_vllm.profile.importers.shellvalue import NO_ARGUMENTS, Remark, Value
from pytest_vllm.profile.importers.shellwalk import DEEPEST, Start, names_set
from pytest_vllm.profile.secrets import secret_name

if TYPE_CHECKING:
    from tree_sitter import Node

    from pytest_vllm.profile.importers.origin import Origin
    from pytest_vllm.profile.importers.shellstate import State
    from pytest_vllm.profile.importers.shelltree import Script

#: Commands that start nothing and set nothing that a server would see.
_QUIET = """
: [ alias chmod chown curl date declare df dirname echo eval exit export free grep hostname kill killall let
ls mkdir module nc nvidia-smi pgrep pkill popd printf ps pushd pwd read readonly return rm set shift shopt
sleep ss tail tee test touch trap true tput type uname unset until wait wc wget which whoami xargs
"""
#: A container that is started and left alone.
_DETACHED = re.compile(r"\b(?:docker|podman|nerdctl)\b[^|;&]*\brun\b[^|;&]*\s(?:-\w*d\w*|--detach)\s")
_IDLE = frozenset(_QUIET.split())


class Run(Branches, BuiltIns):
    """One script, followed."""

    def __init__(
        self,
        origin: Origin,
        script: Script,
        state: State,
        *,
        targets: str = "",
        assumed: frozenset[str] = frozenset(),
    ) -> None:
        """Begin in a state; `targets`: what calls the functions, where nothing else does."""
        super().__init__(origin, script, state)
        self._targets, self.assumed = targets, assumed

    def follow(self) -> Run:
        """The whole script, and then the functions that nobody called."""
        self.visit_all(self.script.root.children)
        for name, (script, body) in list(self.state.functions.items()):
            if name not in self._called and re.search(r"vllm|docker|podman", script.text(body)):
                self._where.append(
                    f"{self._targets} {name} is run" if self._targets else f"{name}() is called"
                )
                before, self.state = self.state, self.state.copy()
                if self._targets:  # a target may be called `vllm` or `docker`, and no recipe calls it so
                    self.state.functions = {}
                self._call(name, (), script, body)
                self.state = before
                self._where.pop()
        for name, line in self.defined.items():
            if name not in self._called and not self._targets:
                self.idle.append((line, f"{name}(), which nothing calls"))
        return self

    # statements

    def _variable_assignment(self, node: Node) -> None:
        self._assign(node)

    def _assign(self, node: Node, *, export: bool = False) -> None:
        self.claim(node)
        target, value = node.children[0], node.children[2] if len(node.children) > 2 else None
        adds = self.script.text(node.children[1]) == "+="
        name, index = self.expand().name(target)
        key = (id(self.script), node.start_byte)
        self.assigned[key] = (self.script.line(node), name)
        if self._inherited.unknown:  # of a text that is not known, so that what it sets is not either
            self.state.assign(name, self._used(self._inherited, key), export=export)
            return
        self._detached(value)
        expander = self.expand()
        if value is not None and value.type == "array":
            if any(re.match(r"\[[^\]]+\]=", self.script.text(child)) for child in value.children):
                self.set_outside(name, self.script.line(node), "is an array by names, which is not followed")
                return
            items = [one for child in value.children if child.is_named for one in self._item(child)]
            before = self.state.several(name) if adds else ()
            self.state.assign(
                name, tuple(before) + tuple(self._used(one, key) for one in items), export=export
            )
            return
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

    def _detached(self, value: Node | None) -> None:
        """A container that is started in the background, and whose id is kept: `ID=$(docker run -d …)`."""
        for one in nodes(value) if value is not None else ():
            if one.type == "command_substitution" and _DETACHED.search(self.script.text(one)):
                before, self.state = self.state, self.state.copy()
                self.visit_all(one.children)
                self.state = before

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
            name = self.script.text(child).partition("=")[0].rstrip("+")
            if "A" in flags and isinstance(self.state.values.get(name), tuple):
                what = f"{name} is a list already: bash breaks off at `{words[0]} -A`"
                raise self.origin.problem(self.script.line(node), what, "give the vllm serve line")
            if words[0] in ("local", "declare", "typeset") and "g" not in flags:
                self._keep(name)
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

    def _keep(self, name: str) -> None:
        """A name that a function has for itself: what it was before comes back behind the call."""
        if self._scopes and name not in self._scopes[-1]:
            self._scopes[-1][name] = (self.state.values.get(name), name in self.state.exported)

    def _compound_statement(self, node: Node) -> None:
        """`{ …; }`, or `(( X = 2 * Y ))`, whose names are set to what is not worked out here."""
        text, line = self.script.text(node), self.script.line(node)
        if not text.startswith("(("):
            self.visit_all(node.children)
            return
        self.claim(node)
        self.idle.append((line, "`(( … ))`"))
        for name in names_set(text):
            self.set_outside(name, line, "is worked out by (( … ))")

    def _unset_command(self, node: Node) -> None:
        self.claim(node)
        self.idle.append((self.script.line(node), "`unset`"))
        for child in node.children[1:]:
            self.state.values.pop(self.script.text(child), None)
            self.state.exported.discard(self.script.text(child))

    def _function_definition(self, node: Node) -> None:
        self.claim(node)
        name, body = (
            self.script.text(next(one for one in node.children if one.type == "word")),
            node.children[-1],
        )
        self.state.functions[name] = (self.script, body)
        self.defined[name] = self.script.line(node)

    def _subshell(self, node: Node) -> None:
        self.not_followed()
        before, self.state = self.state, self.state.copy()
        self.visit_all(node.children)
        self.state = before

    def _pipeline(self, node: Node) -> None:
        self.not_followed()
        for child in node.children:
            if child.is_named:
                before, self.state = self.state, self.state.copy()
                self.visit(child)
                self.state = before

    def _redirected_statement(self, node: Node) -> None:
        body, *redirects = [child for child in node.children if child.is_named]
        text = Value()
        for one in redirects:
            self.claim(one)
            for inner in one.children:
                if inner.type == "heredoc_body":
                    text = self.heredoc(one, inner)
                elif inner.type in ("pipeline", "list", "command") and one.type == "heredoc_redirect":
                    self.visit(inner)
        if text.text and body.type == "command":
            if self._is_shell(body):
                self.claim(body)
                script = parsed(text.text, self.origin, self._first_of(redirects))
                self._inside(script, self._child(), (), text)
                return
            self.keep(body, redirects, text, self._first_of(redirects))
        asked, self._printing = self._printing, "" if self.elsewhere(redirects) else self._printing
        before = len(self.starts)
        self.visit(body)
        self._printing = asked
        self._no_placeholder(redirects, len(self.starts) > before)

    def _no_placeholder(self, redirects: list[Node], started: bool) -> None:
        """Refuse `vllm serve <model>`: a file to read from to a shell, a name to fill in to its writer."""
        for one in redirects if started else ():
            found = re.match(r"<\s*([A-Za-z][\w ./-]*)$", self.script.text(one))
            if found and self.script.source[one.end_byte : one.end_byte + 1] == b">":
                what = f"<{found[1]}> stands for something that the reader is to fill in"
                raise self.origin.problem(self.script.line(one), what, "write it in its place")

    def _first_of(self, redirects: list[Node]) -> int:
        found = [one for each in redirects for one in nodes(each) if one.type == "heredoc_body"]
        return self.script.line(found[0]) if found else 1

    def _is_shell(self, node: Node) -> bool:
        words, _ = stripped(self.expand().words([one for one in node.children if one.is_named]))
        return bool(words) and re.fullmatch(r"(?:.*/)?(?:ba|da|z)?sh", words[0][0].text) is not None

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
            given = Value() if value is None else expander.text(value, secret=secret_name(name))
            prefix.env[name] = (given, self.script.line(one))
        replaces = bool(words) and words[0][0].text == "exec"
        words, more = stripped(words)
        prefix = prefix.and_(more)
        if not words:
            return
        self._started(node, words, prefix)
        if replaces and not self._where:  # the shell is no more; where it hangs on a branch, both ways count
            self.state.replaced = True

    def _started(self, node: Node, words: list[tuple[Value, int]], prefix: Prefix) -> None:
        name, line = words[0][0].text, self.script.line(node)
        built_in = getattr(self, f"_do_{name.replace('.', 'source')}", None)
        if name in self.state.functions:
            script, body = self.state.functions[name]
            self._called.add(name)
            self._call(name, tuple(value for value, _ in words[1:]), script, body)
        elif built_in is not None:
            built_in(node, words)
        elif self.state.replaced:
            self.idle.append((line, "what is never reached, behind `exec`"))
        elif starts([value.text for value, _ in words]):
            said = (*self.state.dropped, *((Remark(line, NO_ARGUMENTS),) if self.state.asked else ()))
            words = [(words[0][0] + self._inherited, words[0][1]), *words[1:]]
            where = tuple(self._where)
            arms = tuple(self._path)
            self.starts.append(Start(words, prefix, self.state.copy(), self.script, node, where, said, arms))
        elif (inner := nested([value for value, _ in words])) is not None:
            value, arguments = inner
            script = parsed(value.text, self.origin, words[-1][1] if len(words) < 3 else words[2][1])
            script = replace(script, at=line) if "\n" not in value.text else script
            self._inside(script, self._child(prefix), arguments, value)
        elif (ran := self.script_run([value for value, _ in words])) is not None:
            written, arguments = ran
            script = parsed(written.text.text, self.origin, written.line)
            self._inside(script, self._child(prefix), arguments, written.text)
        elif name in _IDLE:
            self.idle.append((line, f"`{name}`"))
        else:
            self.others.append((line, _shown(words)))

    def _child(self, prefix: Prefix | None = None) -> State:
        """A shell that this one starts: it sees what is exported."""
        seen = self.state.copy()
        if prefix is not None and prefix.cleared:
            seen.values, seen.exported, seen.outer = {}, set(), {}
        seen.values = {name: value for name, value in seen.values.items() if name in seen.exported}
        for name, (value, _) in (prefix.env if prefix else {}).items():
            seen.assign(name, value, export=True)
        return seen

    def _call(self, name: str, arguments: tuple[Value, ...], script: Script, body: Node) -> None:
        """A function: its own arguments, the same variables."""
        if self._depth >= DEEPEST:
            self.notes.append(Remark(script.line(body), f"{name}() calls itself: it is not followed further"))
            return
        outer, self.script = self.script, script
        before = (self.state.arguments, self.state.called, self.state.ended)
        self.state.arguments, self.state.called = arguments, True
        self._depth += 1
        self._scopes.append({})
        self.visit(body)
        for kept, (value, exported) in self._scopes.pop().items():
            self.state.restore(kept, value, exported=exported)
        self._depth -= 1
        self.state.arguments, self.state.called, ended = before
        self.state.ended = ended or self.state.exited
        self.script = outer


def _shown(words: list[tuple[Value, int]]) -> str:
    """A command by its first words, and by the one further on that holds vLLM, where another starts it."""
    shown = " ".join(value.text for value, _ in words[:6])
    further = any("vllm" in value.text for value, _ in words[6:]) and "vllm" not in shown
    elsewhere = re.match(r"(?:\S*/)?(?:docker|podman|nerdctl|kubectl|oc|ssh)$", words[0][0].text)
    return f"`{shown} … vllm …`" if further and elsewhere else f"`{shown}`"
