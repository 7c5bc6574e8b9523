"""Defects of grammars: behind calls that must come, and of what keeps them for the next request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import failure, refused
from pytest_vllm.sim.defects.registry import add
from pytest_vllm.sim.defects.scope import CHAT, only, remembering

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = (CHAT,)

refused(
    "tools.required-refused",
    "A call that is required is refused by the server's own reading of the thoughts.",
    HERE,
    400,
    failure("1 validation error for list[function-wrap]: Invalid JSON", 400),
    lambda asked: asked.get("tool_choice") == "required",
    faults=["STRUCT-009"],
    catches=["tools.forced.answered"],
)
refused(
    "tools.forced-key-error",
    "A call that is required or named is a server error: the back end lacks structural tags.",
    HERE,
    500,
    failure("'triggers'"),
    lambda asked: asked.get("tool_choice") == "required" or isinstance(asked.get("tool_choice"), dict),
    faults=["STRUCT-027"],
    catches=["tools.forced.answered"],
)


def _kept() -> Callable[..., Any]:
    """Grammars are kept under the names in a schema: the first of these serves all of them."""
    grammars: dict[tuple[str, ...], Any] = {}

    def first(body: Any, path: str) -> Any:
        del path
        form = body.get("response_format") if isinstance(body, dict) else None
        named = form.get("json_schema") if isinstance(form, dict) else None
        schema = named.get("schema") if isinstance(named, dict) else None
        if not isinstance(form, dict) or not isinstance(named, dict) or not isinstance(schema, dict):
            return body
        kept = grammars.setdefault(tuple(sorted(schema.get("properties") or ())), schema)
        return {**body, "response_format": {**form, "json_schema": {**named, "schema": kept}}}

    return first


add(
    "structured.grammars-by-names",
    "A grammar is kept by the names in its schema, and serves other schemas with the same names.",
    {"body": only(HERE, remembering(_kept))},
    catches=["structured.schema.alike"],
)
