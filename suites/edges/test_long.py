"""What is long comes whole where others are short."""

from __future__ import annotations

import json
import re
from typing import Any

from pytest_vllm import MUST, Case, Recording, check, error_in, only_if

from .exchanges import PAGE

VLLM = "vllm:features/tool_calling/"
#: What the routes call an end by the limit of tokens.
CUT = re.compile(r':\s*"(length|max_tokens|max_output_tokens)"')


@check("edges.long-call", MUST, spec=VLLM, needs=["chat", "tools", "stream"])
def test_long_call(edge_route: Case, edges_long_call: Recording) -> None:
    """A streamed call has all of a long argument, over each route."""
    only_if(edges_long_call.status not in (400, 404, 422, 501), f"refused: {edges_long_call.text[:120]}")
    edges_long_call.answered()
    only_if(edges_long_call.status == 200, f"answered with {edges_long_call.status}")
    only_if(not any(map(error_in, edges_long_call.bodies)), "the stream ends in an error")
    only_if(not CUT.search(edges_long_call.text), "the answer was cut by its limit")
    pieces = "".join(_piece(event) for event in edges_long_call.bodies)
    only_if(pieces, "no call was made, which other checks judge")

    assert _read(pieces) == {"page": PAGE}, (
        f"{edge_route.id}: {pieces[:40]!r} … {pieces[-60:]!r}, a page of {len(PAGE)}"
    )


def _piece(event: Any) -> str:
    """The part of a call's arguments that an event of any route brings."""
    delta = event.get("delta") if isinstance(event, dict) else None
    if isinstance(delta, str):
        return delta if event.get("type") == "response.function_call_arguments.delta" else ""
    if isinstance(delta, dict):
        return str(delta.get("partial_json") or "")
    calls = [
        call
        for choice in (event.get("choices") if isinstance(event, dict) else None) or ()
        for call in (choice.get("delta") or {}).get("tool_calls") or ()
    ]
    return "".join(str((call.get("function") or {}).get("arguments") or "") for call in calls)


def _read(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments
