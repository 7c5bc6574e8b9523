"""A Python program followed in the order of execution, without running anything.

Commands that start vLLM are collected where they are handed to a call: `subprocess.Popen(cmd)`,
`os.system(text)`. A branch that hangs on what is not known is followed to find commands; it changes nothing,
and what it would have changed is said.
"""

from __future__ import annotations

import ast
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_vllm.profile.importers.pythonparts import (
    EXITS,
    SHELLS,
    SHOWS,
    TEXT,
    Function,
    Start,
    as_read,
    changed,
    changes,
    copied,
    module_beside,
    starts,
)
from pytest_vllm.profile.importers.pythonvalues import Environ, Scope, Unknown, dotted, evaluate, shown, told

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

_DEEPEST = 8
#: Modules that import each other, at most.
_NESTED = 3
#: Statements that are followed at most, and rounds of a loop.
_MANY = 20_000
_ROUNDS = 16


class _EndError(Exception):
    """A block that ends: with a value (`return`), or for good."""

    def __init__(self, value: Any = None) -> None:
        self.value = value


class _LoopError(Exception):
    """A round of a loop that ends (`continue`), or the loop with it (`break`)."""

    def __init__(self, *, last: bool) -> None:
        self.last = last


@dataclass
class Program:
    """A module, followed."""

    outer: Mapping[str, str]
    folder: Path
    nested: int = 0
    starts: list[Start] = field(default_factory=list)
    functions: dict[str, Function] = field(default_factory=dict)
    arguments: dict[str, tuple[Any, str]] = field(default_factory=dict)
    unclear: list[tuple[int, str]] = field(default_factory=list)
    installed: set[str] = field(default_factory=set)
    image_env: list[tuple[int, Any]] = field(default_factory=list)
    top: Scope | None = None
    module: ast.Module = field(default_factory=lambda: ast.Module([], []))
    _called: set[str] = field(default_factory=set)
    _within: list[Function] = field(default_factory=list)
    _branch: list[tuple[int, str]] = field(default_factory=list)
    _rounds: int = 0
    _steps: int = 0
    _known: dict[int, Any] = field(default_factory=dict)

    def follow(self, module: ast.Module) -> None:
        """The module, and then the functions that nothing in it calls."""
        self.module = module
        self.functions = {one.name: one for one in ast.walk(module) if isinstance(one, Function)}
        scope = self.top = Scope(self.outer, self.folder, self._own)
        scope.names["__file__"] = str(self.folder / "program.py")
        self._block(module.body, scope)
        for name, one in self.functions.items():
            if name not in self._called and name != "__init__":
                self._enter(one, {}, scope)
        sure = [one for one in self.starts if one.sure]
        self.starts = sure or self.starts

    # statements

    def _block(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        """Statements one behind the other; what ends one of them ends them all."""
        try:
            for one in body:
                self._statement(one, scope)
        except _EndError:
            if scope.above is not None:
                raise

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        self._steps += 1
        if self._steps > _MANY:
            raise _EndError
        before, self._known = self._known, {}  # a call is made once in a statement
        try:
            self._one(node, scope)
        except (TypeError, KeyError, IndexError, ValueError, AttributeError):
            raise _EndError from None  # so does the program
        finally:
            self._known = before

    def _one(self, node: ast.stmt, scope: Scope) -> None:
        way = self._ways().get(type(node))
        if way is not None:
            way(node, scope)
        elif isinstance(node, ast.With | ast.AsyncWith):
            self._all(node.body, scope)
        elif isinstance(node, ast.Break | ast.Continue):
            raise _LoopError(last=isinstance(node, ast.Break))
        elif isinstance(node, ast.Raise):
            if node.exc:
                self._value(node.exc, scope)
            raise _EndError
        elif not isinstance(node, Function | ast.Import):
            self._plain(node, scope)

    def _ways(self) -> dict[type[ast.stmt], Callable[[Any, Scope], None]]:
        return {
            ast.If: self._if,
            ast.For: self._for,
            ast.AsyncFor: self._for,
            ast.While: lambda node, scope: self._again(node.body, scope, node.lineno),
            ast.Try: lambda node, scope: self._all([*node.body, *node.orelse, *node.finalbody], scope),
            ast.Return: self._return,
            ast.Match: self._match,
            ast.ClassDef: self._class,
            ast.ImportFrom: self._import,
            ast.Global: lambda node, scope: scope.shared.update(node.names),
        }

    def _return(self, node: ast.Return, scope: Scope) -> None:
        raise _EndError(self._value(node.value, scope) if node.value else None)

    def _class(self, node: ast.ClassDef, scope: Scope) -> None:
        self._all([one for one in node.body if isinstance(one, ast.Assign | ast.AnnAssign)], scope)

    def _import(self, node: ast.ImportFrom, scope: Scope) -> None:
        """Names of a module: their values where it lies beside the program, and is read."""
        module, found = module_beside(node, self.folder) if self.nested < _NESTED else None, {}
        if module is not None:
            inner = Program(self.outer, self.folder, nested=self.nested + 1)
            found = inner.values_of(module)
        for one in node.names:
            value = found.get(one.name, Unknown(node.lineno, f"{one.name}, which is imported"))
            scope.names[one.asname or one.name] = value
            if isinstance(value, str | int | float):
                scope.said.append(
                    (node.lineno, f"{one.name} is {told(one.name, value)}, from {node.module}.py")
                )

    def values_of(self, module: ast.Module) -> dict[str, Any]:
        """What the names of a module stand for."""
        scope = Scope(self.outer, self.folder, self._own)
        self._block(module.body, scope)
        return scope.names

    def _match(self, node: ast.Match, scope: Scope) -> None:
        for one in node.cases:
            self._aside(one.body, scope, f"match {shown(node.subject)}", node.lineno)

    def _all(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        for one in body:
            self._statement(one, scope)

    def _plain(self, node: ast.stmt, scope: Scope) -> None:
        if isinstance(node, ast.Assign):
            value = self._value(node.value, scope)
            for target in node.targets:
                self._assign(target, value, scope)
        elif isinstance(node, ast.AnnAssign) and node.value:
            self._assign(node.target, self._value(node.value, scope), scope)
        elif isinstance(node, ast.AugAssign):
            both = ast.copy_location(ast.BinOp(as_read(node.target), node.op, node.value), node)
            self._assign(node.target, self._value(ast.fix_missing_locations(both), scope), scope)
        elif isinstance(node, ast.Expr):
            if isinstance(node.value, ast.Call) and changes(node.value, scope, self.arguments):
                return
            self._value(node.value, scope)
            if isinstance(node.value, ast.Call) and dotted(node.value.func) in EXITS:
                raise _EndError
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                self._delete(target, scope)

    def _delete(self, target: ast.expr, scope: Scope) -> None:
        if isinstance(target, ast.Subscript):
            owner, key = evaluate(target.value, scope), evaluate(target.slice, scope)
            table = owner.own if isinstance(owner, Environ) else owner
            if isinstance(table, dict) and not isinstance(key, Unknown):
                table.pop(key, None)
                return
        self._assign(target, Unknown(target.lineno, target), scope)

    def _value(self, node: ast.expr, scope: Scope) -> Any:
        """What an expression comes to; commands that are handed to a call on the way are collected."""
        for one in [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]:
            self._handed(one, scope)
        return evaluate(node, scope)

    def _assign(self, target: ast.expr, value: Any, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            (scope.above or scope if target.id in scope.shared else scope).names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            fits = isinstance(value, list) and len(value) == len(target.elts)
            for at, one in enumerate(target.elts):
                self._assign(one, value[at] if fits else Unknown(target.lineno, one), scope)
        elif isinstance(target, ast.Subscript):
            owner, key = evaluate(target.value, scope), evaluate(target.slice, scope)
            if isinstance(owner, Environ):
                owner.own[str(key)] = value
            elif isinstance(owner, dict) and not isinstance(key, Unknown):
                owner[key] = value

    # branches

    def _if(self, node: ast.If, scope: Scope) -> None:
        found = self._value(node.test, scope)
        if not isinstance(found, Unknown):
            self._all(node.body if found else node.orelse, scope)
            return
        for body in (node.body, node.orelse):
            self._aside(body, scope, shown(node.test), node.lineno)

    def _aside(self, body: Sequence[ast.stmt], scope: Scope, test: str, line: int) -> None:
        """An arm that may be taken: commands in it are found, what it changes is said and taken back."""
        kept, environ = copied(scope.names), dict(scope.environ.own)
        self._branch.append((line, test))
        try:
            self._all(body, scope)
        except _EndError as end:
            if end.value is not None:
                within = self._within[-1].name if self._within else "it"
                scope.said.append((line, f"{within}() returns something else where `{test}` decides so"))
        except _LoopError:
            scope.said.append((line, f"a loop ends where `{test}` decides so: that is not followed"))
        self._branch.pop()
        for name, before in kept.items():
            after = scope.names.get(name)
            if after == before:
                continue
            if self._rounds:
                kept[name] = Unknown(line, f"{name}, which a loop may change")
            elif isinstance(before, list | str | int | float | dict | None):
                scope.said.append((line, changed(name, before, after, test)))
        for name, value in [(one, two) for one, two in scope.names.items() if one not in kept]:
            kept[name] = Unknown(line, f"{name}, which a branch sets") if value is not None else None
        scope.names.clear()
        scope.names.update(kept)
        scope.environ.own = environ

    def _for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        values = self._value(node.iter, scope)
        if not isinstance(values, list) or len(values) > _ROUNDS:
            self._assign(node.target, Unknown(node.lineno, f"{shown(node.target)}, of a loop"), scope)
            self._again(node.body, scope, node.lineno)
            return
        for one in values:
            self._assign(node.target, one, scope)
            try:
                self._all(node.body, scope)
            except _LoopError as end:
                if end.last:
                    break

    def _again(self, body: Sequence[ast.stmt], scope: Scope, line: int) -> None:
        """A loop whose rounds are not known: what it changes is not known behind it."""
        kept = copied(scope.names)
        self._rounds += 1
        with suppress(_EndError, _LoopError):
            self._all(body, scope)
        self._rounds -= 1
        for name, before in kept.items():
            after = scope.names.get(name)
            if after != before and isinstance(after, list):
                after.append(Unknown(line, f"{name}, which a loop changes"))
            elif after != before:
                scope.names[name] = Unknown(line, f"{name}, which a loop changes")

    # calls

    def _own(self, node: ast.Call, scope: Scope) -> Any:
        """What a function of the program's own returns; None for any other call."""
        name = dotted(node.func)
        if name.endswith((".parse_args", ".parse_known_args")):
            table = {"\0arguments": dict(self.arguments)}
            rest = Unknown(node.lineno, "what it is given on the command line, which nothing here says")
            return [table, rest] if name.endswith("known_args") else table
        one = self.functions.get(name)
        if id(node) in self._known:
            return self._known[id(node)]
        if one is None or len(self._within) >= _DEEPEST or one in self._within:
            return None
        self._called.add(name)
        names = [each.arg for each in one.args.args]
        given = dict(zip(names, (evaluate(each, scope) for each in node.args), strict=False))
        given |= {each.arg: evaluate(each.value, scope) for each in node.keywords if each.arg}
        found = self._known[id(node)] = self._enter(one, given, scope)
        return found

    def _enter(self, node: Function, given: Mapping[str, Any], scope: Scope) -> Any:
        inner = scope.inner()
        arguments = node.args
        plain = arguments.args
        last = plain[len(plain) - len(arguments.defaults) :]
        pairs = [
            *zip(last, arguments.defaults, strict=True),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        defaults = {one.arg: two for one, two in pairs if two}
        for one in (*plain, *arguments.kwonlyargs):
            value = given.get(one.arg, _ABSENT)
            if value is _ABSENT and one.arg in defaults:
                value = evaluate(defaults[one.arg], inner)
                if isinstance(value, str | int | float) and not isinstance(value, bool):
                    inner.said.append(
                        (node.lineno, f"{node.name}(): {one.arg} is {told(one.arg, value)} by default")
                    )
            elif value is _ABSENT:
                value = Unknown(node.lineno, f"{one.arg}, which {node.name}() is given")
            inner.names[one.arg] = value
        self._within.append(node)
        try:
            self._all(node.body, inner)
        except _EndError as end:
            return end.value if end.value is not None else Unknown(node.lineno, f"{node.name}()")
        finally:
            self._within.pop()
        return Unknown(node.lineno, f"{node.name}()")

    def _handed(self, node: ast.Call, scope: Scope) -> None:
        """Collect a command that a call is given, in a list or as a text."""
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = dotted(node.func) or method
        if method == "env" and len(node.args) == 1:
            self.image_env.append((node.lineno, evaluate(node.args[0], scope)))
        if method.endswith("pip_install"):
            texts = [evaluate(one, scope) for one in node.args if not isinstance(one, ast.Starred)]
            self.installed |= {one for one in texts if isinstance(one, str)}
        if SHOWS.fullmatch(name) or name in self.functions:
            return
        given = [*node.args, *[one.value for one in node.keywords if one.arg not in ("env", "image")]]
        for one in given:
            value = evaluate(one.value if isinstance(one, ast.Starred) else one, scope)
            if isinstance(value, list):
                found = starts(value)
            else:
                shell = SHELLS.fullmatch(name) is not None
                found = isinstance(value, str) and shell and TEXT.search(value) is not None
            if found:
                self._found(value, node, scope)
            elif isinstance(value, Unknown) and SHELLS.fullmatch(name) and TEXT.search(ast.unparse(one)):
                self.unclear.append((value.line, value.what))
        words = [evaluate(one, scope) for one in node.args if not isinstance(one, ast.Starred)]
        if starts(words):
            self._found(words, node, scope)

    def _found(self, words: Sequence[Any] | str, node: ast.Call, scope: Scope) -> None:
        environ = dict(scope.environ.own)
        given = next((one.value for one in node.keywords if one.arg == "env"), None)
        if given is not None:
            value = evaluate(given, scope)
            if isinstance(value, Environ | dict):
                environ = value.own if isinstance(value, Environ) else value
        within = self._within[-1] if self._within else None
        said = [
            *scope.said,
            *[(line, f"it is started only where `{test}` decides so") for line, test in self._branch],
        ]
        kept = words if isinstance(words, str) else list(words)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        sure = SHELLS.fullmatch(dotted(node.func) or method) is not None
        found = Start(
            kept,
            environ,
            node.lineno,
            within.name if within else "",
            tuple((line, text) for text, line in {text: line for line, text in reversed(said)}.items()),
            within,
            sure,
        )
        if all((one.words, one.line) != (found.words, found.line) for one in self.starts):
            self.starts.append(found)


_ABSENT = object()
