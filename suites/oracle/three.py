"""Three calls at once over every route that streams calls: what is right for two may fail for the third."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..tools.requests import calm, room  # noqa: TID252 - suites lie together
from ..tools.tools import OSLO, PARIS, ROME, oslo, paris, rome  # noqa: TID252 - suites lie together
from .answers import CHAT, MESSAGES, RESPONSES

if TYPE_CHECKING:
    from pytest_vllm import Recording, Request, Server

ASKED = f"What is the weather in Oslo, in Paris and in Rome? Call {OSLO}, call {PARIS} and call {ROME}."
USAGE = {"include_usage": True}


def three(server: Server, switch: Recording, path: str) -> Request:
    """A stream for which three calls are due, of three tools."""
    functions = [one["function"] for one in (oslo, paris, rome)]
    turns = [{"role": "user", "content": ASKED}]
    bodies: dict[str, dict[str, Any]] = {
        CHAT: {"messages": turns, "tools": [oslo, paris, rome], "tool_choice": "required"},
        RESPONSES: {
            "input": ASKED,
            "store": False,
            "tools": [{"type": "function", **one} for one in functions],
            "tool_choice": "required",
        },
        MESSAGES: {
            "messages": turns,
            "tools": [_messages_tool(one) for one in functions],
            "tool_choice": {"type": "any"},
        },
    }
    limit = "max_output_tokens" if path == RESPONSES else "max_tokens"
    shared = {limit: room(server, switch), "temperature": 0, "stream": True, **calm(server, switch)}
    usage = {"stream_options": USAGE} if path == CHAT else {}
    return server.post(path, {**bodies[path], **shared, **usage}, expect=None)


def _messages_tool(one: dict[str, Any]) -> dict[str, Any]:
    return {"name": one["name"], "description": one["description"], "input_schema": one["parameters"]}
