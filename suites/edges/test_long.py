"""What is long comes whole where others are short."""

from __future__ import annotations

import json

from pytest_vllm import MUST, Case, Recording, check, need, only_if

from ..oracle.answers import answer_of  # noqa: TID252 - suites lie together
from .exchanges import PAGE, WRITER

VLLM = "vllm:features/tool_calling/"


@check("edges.long-call", MUST, spec=VLLM, needs=["chat", "tools", "stream"])
def test_long_call(edge_route: Case, edges_long_call: Recording) -> None:
    """A streamed call has all of a long argument, over each route."""
    only_if(edges_long_call.status not in (400, 404, 422, 501), f"refused: {edges_long_call.text[:120]}")
    edges_long_call.answered()
    answer = answer_of(edges_long_call)
    need(answer is not None and answer.choices, "the stream cannot be read")
    (choice,) = answer.choices if answer else ()
    cut = any(end in ("length", "max_tokens", "max_output_tokens") for end in choice.finish)
    only_if(not cut, "the answer was cut by its limit")
    only_if(choice.calls, "no call was made, which other checks judge")
    name, arguments = choice.calls[0]

    assert (name, _read(arguments)) == (WRITER, {"page": PAGE}), (
        f"{edge_route.id}: {name} {arguments[:40]!r} … {arguments[-60:]!r}, {len(PAGE)} letters are possible"
    )


def _read(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments
