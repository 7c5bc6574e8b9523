"""Names that vLLM keeps in tables: parsers, architectures, environment variables, choices."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from tools.new_version.flags import fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.new_version.code import Code

Entries = dict[str, dict[str, Any]]

PARSERS = {
    "tool": (
        "_TOOL_PARSERS_TO_REGISTER",
        ("tool_parsers/__init__.py", "entrypoints/openai/tool_parsers/__init__.py"),
    ),
    "reasoning": ("_REASONING_PARSERS_TO_REGISTER", ("reasoning/__init__.py",)),
}
REGISTRY = "model_executor/models/registry.py"
#: Where one piece of a string ends and the next begins.
_PIECES = re.compile(r"""(["'])[ \t]*\n[ \t]*[rfb]{0,2}["']""")
#: Tables of the registry that name what is not supported, or only from outside.
NOT_SUPPORTED = ("_PREVIOUSLY_SUPPORTED_MODELS", "_OOT_SUPPORTED_MODELS", "_VLLM_MODELS")


def parsers(code: Code) -> Entries:
    """Tool and reasoning parsers by `kind/name`, with their class."""
    return {
        f"{kind}/{name}": {"class": value[-1]} if isinstance(value, tuple) else {}
        for kind, (table, places) in PARSERS.items()
        for place in places
        for name, value in _table(code, table, place)
    }


def architectures(code: Code) -> Entries:
    """Model architectures that this version runs itself."""
    found: Entries = {}
    for node in code.tree(REGISTRY).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        name = target.id if isinstance(target, ast.Name) else ""
        if name.endswith("_MODELS") and name not in NOT_SUPPORTED and isinstance(node.value, ast.Dict):  # type: ignore[attr-defined]
            found |= {str(key.value): {} for key in node.value.keys if isinstance(key, ast.Constant)}  # type: ignore[attr-defined]
    return found


def environment(code: Code) -> Entries:
    """Environment variables that vLLM reads by its own table."""
    found = code.constant("environment_variables", "envs.py")
    table = found[0] if found else None
    keys = table.keys if isinstance(table, ast.Dict) else []
    return {str(key.value): {} for key in keys if isinstance(key, ast.Constant)}


def choices(code: Code) -> Entries:
    """Methods and fields of speculation, attention back ends."""
    method = code.constant("SpeculativeMethod", "config/speculative.py")
    names = code.options(*method) if method else []
    own = [
        field.target.id
        for _, _, field in fields(code, "SpeculativeConfig")
        if isinstance(field.target, ast.Name)
    ]
    kinds = {"speculation": names, "field": own, "attention": list(_members(code))}
    return {f"{kind}/{name}": {} for kind, every in kinds.items() for name in every}


def _members(code: Code) -> Iterator[str]:
    for path in code.files("v1/attention"):
        for node in code.tree(path).body:
            if isinstance(node, ast.ClassDef) and node.name == "AttentionBackendEnum":
                for one in node.body:
                    if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
                        yield one.targets[0].id


def _table(code: Code, name: str, path: str) -> list[tuple[str, Any]]:
    found = code.constant(name, path)
    value = code.value(*found) if found else None
    return list(value.items()) if isinstance(value, dict) else []


def said(code: Code) -> str:
    """The source of the whole package, strings that are written in pieces put together."""
    written = "\n".join(code.source(path) for path in code.files())
    return _PIECES.sub("", written)
