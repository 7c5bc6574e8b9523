"""What a server shows: routes, fields of its messages, metrics; read from the code that makes them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from tools.new_version.code import UNKNOWN, Code, called, keyword, texts
from tools.new_version.flags import default_of, fields

if TYPE_CHECKING:
    from collections.abc import Iterator

Entries = dict[str, dict[str, Any]]

VERBS = ("get", "post", "put", "delete", "patch", "head")
_METRICS = ("counter", "gauge", "histogram")
_UNTYPED = "unknown (base name; counters gain _total)"


def routes(code: Code) -> Entries:
    """Paths and methods that decorators of the entry points name."""
    found: dict[str, set[str]] = {}
    for path in code.files("entrypoints"):
        tree = code.tree(path)
        prefix = next(
            (
                code.value(keyword(node.value, "prefix"), path)
                for node in tree.body
                if isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call)
                and called(node.value) == "APIRouter"
                and keyword(node.value, "prefix") is not None
            ),
            "",
        )
        for call in _decorators(tree):
            route = code.value(call.args[0], path) if call.args else UNKNOWN
            if isinstance(route, str) and route.startswith("/") and isinstance(prefix, str):
                found.setdefault(prefix + route, set()).update(_methods(code, path, call))
    return {name: {"methods": sorted(methods)} for name, methods in found.items()}


def _decorators(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for one in node.decorator_list:
                if isinstance(one, ast.Call) and called(one) in (*VERBS, "api_route"):
                    yield one


def _methods(code: Code, path: str, call: ast.Call) -> list[str]:
    if called(call) in VERBS:
        return [called(call).upper()]
    named = code.value(keyword(call, "methods"), path)
    return [str(one).upper() for one in named] if isinstance(named, list) else []


def messages(code: Code) -> Entries:
    """`Class.field` of every class that a request or an answer is made of."""
    found: Entries = {}
    for name in sorted(code.classes):
        path = code.classes[name][0]
        if not path.startswith("entrypoints") or not _is_model(code, name, set()):
            continue
        for _, place, field in fields(code, name):
            label = field.target.id if isinstance(field.target, ast.Name) else ""
            written = code.type_of(field.annotation, place)
            if label.startswith("_") or label == "model_config" or written.startswith("ClassVar"):
                continue
            default = default_of(code, place, field.value)
            entry = {"type": written} | ({} if default is None else {"default": default})
            found[f"{name}.{label}"] = entry
    return found


def _is_model(code: Code, name: str, seen: set[str]) -> bool:
    if name in ("BaseModel", "OpenAIBaseModel"):
        return True
    if name not in code.classes or name in seen:
        return False
    bases = [base for base in code.classes[name][1].bases if isinstance(base, ast.Name | ast.Attribute)]
    return any(
        _is_model(code, base.id if isinstance(base, ast.Name) else base.attr, seen | {name}) for base in bases
    )


def metrics(code: Code) -> Entries:
    """Families by exposed name: type where it is made by a call, else unknown; the part that makes it."""
    found: Entries = {}
    for path in (*code.files("v1"), *code.files("distributed"), *code.files("entrypoints")):
        if '"vllm:' not in code.source(path):
            continue
        tree = code.tree(path)
        typed = {
            text: kind
            for call in ast.walk(tree)
            if isinstance(call, ast.Call)
            for kind in _METRICS
            if kind in called(call).lower()
            for text in _names(call)
        }
        for text in _names(tree):
            kind = typed.get(text, "")
            name = f"{text}_total" if kind == "counter" and not text.endswith("_total") else text
            part = path.rpartition("/")[0]
            entry = {"type": kind or _UNTYPED, "engines": ["V1"]}
            if kind or name not in found:
                found[name] = entry | ({} if part == "v1/metrics" else {"component": part})
    return found


def _names(node: ast.AST) -> list[str]:
    whole = [text for text in texts(node) if text.startswith("vllm:") and "{}" not in text]
    return [text for text in whole if text[5:].replace("_", "").isalnum() and text.islower()]


def cache_config(code: Code) -> Entries:
    """Labels of vllm:cache_config_info: the fields of CacheConfig."""
    return {
        field.target.id: {}
        for _, _, field in fields(code, "CacheConfig")
        if isinstance(field.target, ast.Name)
    }
