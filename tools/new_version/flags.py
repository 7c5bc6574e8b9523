"""The flags of `vllm serve`, read from the code that adds them to the argument parser."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.check.typed import members
from tools.new_version.code import UNKNOWN, Code, called, keyword

if TYPE_CHECKING:
    from collections.abc import Iterator

Entries = dict[str, dict[str, Any]]

#: Classes whose every field is a flag; the newest frontend class holds the older one's.
FRONTEND = ("FrontendArgs",)
#: Functions that add flags one by one.
ADDERS = ("add_cli_args", "make_arg_parser")
_PLAIN = {"int": "int", "float": "float", "str": "str", "loads": "json"}


def flags(code: Code) -> Entries:
    """Every flag: type, default, choices, group, as far as the code says it."""
    found: Entries = {}
    for name in FRONTEND:
        for _, path, field in fields(code, name):
            found[_flag(field)] = _shape(code, path, field) | {"group": "Frontend"}
    for path, node in _functions(code):
        held = _held(node)
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and called(call) == "add_argument":
                found |= _added(code, path, call, held)
    return found


def fields(code: Code, name: str) -> Iterator[tuple[str, str, ast.AnnAssign]]:
    """The fields of a class and of those it is made from, its own last: owner, file, field."""
    if name not in code.classes:
        return
    path, node = code.classes[name]
    for base in node.bases:
        yield from fields(code, base.id if isinstance(base, ast.Name) else "")
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            yield name, path, one


def default_of(code: Code, path: str, node: ast.expr | None) -> Any:
    """A field's default: a value, `@required` without one, `@…` where it is computed."""
    if node is None:
        return "@required"
    if isinstance(node, ast.Call) and called(node) in ("Field", "field"):
        factory = keyword(node, "default_factory")
        if factory is not None:
            return _made(factory)
        first = node.args[0] if node.args else keyword(node, "default")
        return default_of(code, path, first)
    if isinstance(node, ast.Constant) and node.value is ...:
        return "@required"
    value = code.value(node, path)
    if value is UNKNOWN:
        return f"@{ast.unparse(node)}"
    plain = value is None or isinstance(value, bool | int | float | str | list | dict)
    return value if plain else f"@{ast.unparse(node)}"


def _made(factory: ast.expr) -> Any:
    name = factory.id if isinstance(factory, ast.Name) else ""
    return {"list": [], "dict": {}}.get(name, f"@{name or ast.unparse(factory)}()")


def _functions(code: Code) -> Iterator[tuple[str, ast.AST]]:
    """The functions that add flags: of the engine, and of the file that has the frontend's class."""
    frontend = [code.classes[name][0] for name in FRONTEND if name in code.classes]
    for path in ("engine/arg_utils.py", *frontend):
        for node in ast.walk(code.tree(path)):
            if isinstance(node, ast.FunctionDef) and node.name in ADDERS:
                yield path, node


#: What a variable of such a function holds: the arguments of a class, or those of one field of it.
Held = dict[str, tuple[str, str]]


def _held(function: ast.AST) -> Held:
    found: Held = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value
            if isinstance(value, ast.Call) and called(value) == "get_kwargs":
                found[node.targets[0].id] = (ast.unparse(value.args[0]), "")
            elif (of := _field_of(value, found)) is not None:
                found[node.targets[0].id] = of
    return found


def _field_of(node: ast.expr, held: Held) -> tuple[str, str] | None:
    """Class and field whose arguments an expression is: `load_kwargs["download_dir"]`, or a name for it."""
    if isinstance(node, ast.Name) and held.get(node.id, ("", ""))[1]:
        return held[node.id]
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and isinstance(node.slice, ast.Constant)
        and node.value.id in held
    ):
        return held[node.value.id][0], str(node.slice.value)
    return None


def _added(code: Code, path: str, call: ast.Call, held: Held) -> Entries:
    words = [str(one.value) for one in call.args if isinstance(one, ast.Constant)]
    long = [word for word in words if word.startswith("--")]
    if not long:
        return {}
    name = next((word for word in long if not word.startswith("--no-")), long[0])[2:].replace("_", "-")
    aliases = [word for word in words if word != f"--{name}"]
    entry: dict[str, Any] = {"aliases": aliases} if aliases else {}
    spread = next((one.value for one in call.keywords if one.arg is None), None)
    if spread is None:
        return {name: entry | _by_hand(code, path, call)}
    inner, over = _merged(code, path, spread)
    owner, key = _field_of(inner, held) or ("", "")
    found = next((one for one in fields(code, owner) if _flag(one[2]) == _hyphens(key)), None)
    return {name: entry | (_shape(code, *found[1:]) if found else {}) | {"group": owner} | over}


def _merged(code: Code, path: str, node: ast.expr) -> tuple[ast.expr, dict[str, Any]]:
    """The arguments that `{**those, "default": 1}` starts from, and the default that it sets."""
    if not isinstance(node, ast.Dict):
        return node, {}
    inner = next((value for key, value in zip(node.keys, node.values, strict=True) if key is None), node)
    pairs = [
        (key.value, value)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant)
    ]
    over = {str(key): default_of(code, path, value) for key, value in pairs if key == "default"}
    return inner, over


def _by_hand(code: Code, path: str, call: ast.Call) -> dict[str, Any]:
    """A flag whose arguments are written out."""
    action, default = code.value(keyword(call, "action"), path), keyword(call, "default")
    shape: dict[str, Any] = {"type": "bool" if action in ("store_true", "store_false") else "str"}
    kind = keyword(call, "type")
    if isinstance(kind, ast.Name | ast.Attribute):
        shape["type"] = _PLAIN.get(kind.id if isinstance(kind, ast.Name) else kind.attr, "custom")
    elif kind is not None:
        shape["type"] = "custom"
    choices = code.value(keyword(call, "choices"), path)
    if isinstance(choices, list | tuple):
        shape |= {"type": "choice", "choices": sorted(str(one) for one in choices if one is not None)}
    shape["default"] = default_of(code, path, default) if default is not None else None
    return shape


def _shape(code: Code, path: str, field: ast.AnnAssign) -> dict[str, Any]:
    """Type, default and choices of a flag that a field of a class makes."""
    written = code.type_of(field.annotation, path)
    parts = {part for part in members(written) if part != "None"}
    options = sorted(map(str, code.options(field.annotation, path)))
    default = default_of(code, path, field.value)
    shape: dict[str, Any] = {"type": _kind(code, parts), "default": default}
    if "bool" in parts:
        return shape | {"negatable": True}
    if options:
        shape |= {"suggested": options} if "str" in parts else {"choices": options, "type": "choice"}
    return shape


def _kind(code: Code, parts: set[str]) -> str:
    heads = {part.partition("[")[0] for part in parts}
    config = next((head for head in sorted(heads) if head in code.classes), "")
    if config:
        return f"json({config})"
    for head, kind in (
        ("bool", "bool"),
        ("tuple", "list"),
        ("list", "list"),
        ("set", "list"),
        ("int", "int"),
        ("float", "float"),
        ("dict", "json"),
    ):
        if head in heads:
            return kind
    return "str"


def _flag(field: ast.AnnAssign) -> str:
    return _hyphens(field.target.id if isinstance(field.target, ast.Name) else "")


def _hyphens(name: object) -> str:
    return str(name).replace("_", "-")
