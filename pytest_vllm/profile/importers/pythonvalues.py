"""What an expression of a Python program comes to, without running it: texts, numbers, lists, tables."""

from __future__ import annotations

import ast
import json
import operator
import shlex
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_vllm.profile.importers.marks import secret_mark, unmarked
from pytest_vllm.profile.secrets import secret_name, secret_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_LONGEST = 60
#: More characters or entries than a command line has.
_LARGEST = 10_000
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_PLAIN: dict[str, Callable[..., Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "list": list,
    "tuple": list,
    "dict": dict,
    "len": len,
    "json.dumps": json.dumps,
    "shlex.quote": shlex.quote,
    "shlex.split": shlex.split,
    "shlex.join": shlex.join,
    "Path": PurePosixPath,
    "pathlib.Path": PurePosixPath,
    "os.path.join": lambda *parts: str(PurePosixPath(*parts)),
    "os.path.expanduser": str,
}
#: Keywords that change how a text looks and not what it says.
_ANY = ("separators", "ensure_ascii", "sort_keys")
_METHODS = ("strip", "lower", "upper", "split", "join", "format", "replace", "removeprefix", "startswith")


@dataclass(frozen=True)
class Unknown:
    """What the program alone would know.

    Args:
        line: where it is used first.
        of: the expression, or words for it.
    """

    line: int
    of: ast.AST | str

    @property
    def what(self) -> str:
        """The expression for people."""
        return self.of if isinstance(self.of, str) else shown(self.of)


class Environ:
    """`os.environ`, and copies of it: what the program sets in it is in `own`."""

    def __init__(self, own: Mapping[str, Any] | None = None) -> None:
        """Begin with what is set in it."""
        self.own = dict(own or {})


@dataclass
class Scope:
    """Names and what they stand for.

    Args:
        outer: the environment.
        folder: where the program lies.
        call: what a call of a function of the program's own comes to; None for any other.
        names: of the function, or of the module.
        above: the module's scope, within a function.
        said: line and text of what has to be said of values that stem from elsewhere.
        environ: the program's own environment.
        shared: names of the module's that a function sets (`global`).
    """

    outer: Mapping[str, str]
    folder: Path
    call: Callable[[ast.Call, Scope], Any]
    names: dict[str, Any] = field(default_factory=dict)
    above: Scope | None = None
    said: list[tuple[int, str]] = field(default_factory=list)
    environ: Environ = field(default_factory=Environ)
    shared: set[str] = field(default_factory=set)

    def inner(self) -> Scope:
        """The scope of a function."""
        top = self.above or self
        return Scope(self.outer, self.folder, self.call, {}, top, self.said, self.environ)

    def look(self, name: str) -> Any:
        """What a name stands for; KeyError for one that nothing has set."""
        if name in self.names or self.above is None:
            return self.names[name]
        return self.above.look(name)


def told(name: str, value: Any) -> str:
    """A value for people; a secret is not."""
    hidden = secret_name(name.lstrip("-").replace("-", "_")) or secret_text(str(value))
    text = "…" if hidden else unmarked(repr(value))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def dotted(node: ast.AST) -> str:
    """`os.environ.get` of such an expression; empty for others."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


def shown(node: ast.AST) -> str:
    """An expression for people."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def evaluate(node: ast.expr, scope: Scope) -> Any:
    """What an expression comes to; an Unknown for what is not worked out here. Never raises."""
    way = _WAYS.get(type(node))
    try:
        found = way(node, scope) if way else Unknown(node.lineno, node)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError, OverflowError):
        return Unknown(node.lineno, node)
    large = isinstance(found, str | list | dict) and len(found) > _LARGEST
    large = large or (isinstance(found, int) and abs(found) > 2**63)
    return Unknown(node.lineno, node) if large else found


def _constant(node: ast.Constant, scope: Scope) -> Any:
    del scope
    return node.value


def _name(node: ast.Name, scope: Scope) -> Any:
    return "__main__" if node.id == "__name__" else scope.look(node.id)


def _listed(node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> Any:
    found: list[Any] = []
    for one in node.elts:
        if not isinstance(one, ast.Starred):
            found.append(evaluate(one, scope))
            continue
        value = evaluate(one.value, scope)
        found += list(value) if isinstance(value, list) else [Unknown(one.lineno, one)]
    return found


def _table(node: ast.Dict, scope: Scope) -> Any:
    found: dict[Any, Any] = {}
    environ = False
    for key, one in zip(node.keys, node.values, strict=True):
        value = evaluate(one, scope)
        if key is not None:
            found[evaluate(key, scope)] = value
        elif isinstance(value, Environ):
            found, environ = {**found, **value.own}, True
        else:
            found = {**found, **value}
    return Environ(found) if environ else found


def _text(node: ast.JoinedStr, scope: Scope) -> Any:
    found = ""
    for one in node.values:
        if isinstance(one, ast.FormattedValue):
            value = evaluate(one.value, scope)
            if isinstance(value, Unknown | list | dict | Environ) or one.format_spec:
                return Unknown(node.lineno, one.value)
            found += str(value)
        else:
            found += str(evaluate(one, scope))
    return found


def _sum(node: ast.BinOp, scope: Scope) -> Any:
    left, right = evaluate(node.left, scope), evaluate(node.right, scope)
    if isinstance(left, PurePosixPath) and isinstance(node.op, ast.Div):
        return left / right
    if isinstance(left, list) and isinstance(right, Unknown):
        return [*left, right]
    for one in (left, right):
        if isinstance(one, Unknown):
            return one
    if isinstance(node.op, ast.Mult) and isinstance(left, int | float) and isinstance(right, int | float):
        return left * right
    return _OPERATORS[type(node.op)](left, right)


def _either(node: ast.BoolOp, scope: Scope) -> Any:
    found: Any = None
    for one in node.values:
        found = evaluate(one, scope)
        if isinstance(found, Unknown) or bool(found) is isinstance(node.op, ast.Or):
            return found
    return found


def _unary(node: ast.UnaryOp, scope: Scope) -> Any:
    value = evaluate(node.operand, scope)
    if isinstance(value, Unknown):
        return value
    return not value if isinstance(node.op, ast.Not) else -value


def _compare(node: ast.Compare, scope: Scope) -> Any:
    left, right = evaluate(node.left, scope), evaluate(node.comparators[0], scope)
    unknown = next((one for one in (left, right) if isinstance(one, Unknown)), None)
    if unknown is not None or len(node.ops) > 1:
        return unknown or Unknown(node.lineno, node)
    return _COMPARED[type(node.ops[0])](left, right)


def _choice(node: ast.IfExp, scope: Scope) -> Any:
    test = evaluate(node.test, scope)
    if isinstance(test, Unknown):
        return Unknown(node.lineno, node)
    return evaluate(node.body if test else node.orelse, scope)


def _at(node: ast.Subscript, scope: Scope) -> Any:
    value, key = evaluate(node.value, scope), evaluate(node.slice, scope)
    if isinstance(value, Environ):
        return of_environ(
            value, key, Unknown(node.lineno, f"{shown(node)}, which has to be set"), node, scope
        )
    return value[key]


def _attribute(node: ast.Attribute, scope: Scope) -> Any:
    name = dotted(node)
    if name == "os.environ":
        return scope.environ
    if name == "sys.executable":
        return "python3"
    value = evaluate(node.value, scope)
    if isinstance(value, dict) and "\0arguments" in value:
        found, flag = value["\0arguments"][node.attr]
        if not isinstance(found, Unknown) and found not in (None, False):
            scope.said.append((node.lineno, f"{flag} is {told(flag, found)} by default: that is taken"))
        return found
    return value.parent if node.attr == "parent" and isinstance(value, PurePosixPath) else _no(node)


def _no(node: ast.expr) -> Unknown:
    return Unknown(node.lineno, node)


def of_environ(environ: Environ, name: Any, otherwise: Any, node: ast.AST, scope: Scope) -> Any:
    """A variable of the environment, or what stands in for it."""
    if name in environ.own:
        return environ.own[name]
    if isinstance(name, str) and secret_name(name):
        return secret_mark(name)
    if name in scope.outer:
        said = f"{name} is taken from the environment: {scope.outer[name]!r}"
        scope.said.append((getattr(node, "lineno", 0), said))
        return scope.outer[name]
    return otherwise


def _call(node: ast.Call, scope: Scope) -> Any:
    name = dotted(node.func)
    given = [evaluate(one, scope) for one in node.args]
    owner = evaluate(node.func.value, scope) if isinstance(node.func, ast.Attribute) else None
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name == "os.getenv" or (isinstance(owner, Environ) and method == "get"):
        environ = owner if isinstance(owner, Environ) else scope.environ
        return of_environ(environ, given[0], given[1] if len(given) > 1 else None, node, scope)
    if isinstance(owner, Environ) and method == "copy":
        return Environ(owner.own)
    if name == "dict" and given and isinstance(given[0], Environ):
        more = {one.arg: evaluate(one.value, scope) for one in node.keywords if one.arg}
        return Environ(given[0].own | more)
    if name == "getattr" and isinstance(given[1], str):
        return _attribute(ast.copy_location(ast.Attribute(node.args[0], given[1], ast.Load()), node), scope)
    mine = scope.call(node, scope)
    return _known(node, name, owner, given) if mine is None else mine


def _known(node: ast.Call, name: str, owner: Any, given: list[Any]) -> Any:
    """A call of Python's own."""
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    inside = [each for one in given for each in (one if isinstance(one, list) else [one])]
    unknown = next((one for one in inside if isinstance(one, Unknown)), None)
    if name in _PLAIN and all(one.arg in _ANY for one in node.keywords):
        return unknown or _PLAIN[name](*given)
    if method == "copy" and isinstance(owner, list | dict):
        return owner.copy()
    if method == "get" and isinstance(owner, dict):
        return owner.get(*given)
    if method in ("items", "keys", "values") and isinstance(owner, dict):
        return [list(one) if method == "items" else one for one in getattr(owner, method)()]
    return _of_text(owner, method, given, node) if method in _METHODS else _no(node)


def _of_text(owner: Any, method: str, given: list[Any], node: ast.Call) -> Any:
    large = method == "replace" and len(given) == 2 and len(str(owner)) * len(str(given[1])) > _LARGEST
    if not isinstance(owner, str) or node.keywords or large or (method == "format" and ":" in owner):
        return _no(node)
    if method == "join":
        given = [[one if isinstance(one, Unknown) else str(one) for one in given[0]]]
        if bad := next((one for one in given[0] if isinstance(one, Unknown)), None):
            return bad
    return getattr(owner, method)(*given)


_WAYS: dict[type[ast.expr], Callable[[Any, Scope], Any]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.List: _listed,
    ast.Tuple: _listed,
    ast.Dict: _table,
    ast.JoinedStr: _text,
    ast.BinOp: _sum,
    ast.BoolOp: _either,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.IfExp: _choice,
    ast.Subscript: _at,
    ast.Attribute: _attribute,
    ast.Call: _call,
}
