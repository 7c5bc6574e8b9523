"""Three calls at once over every route that streams calls: what is right for two may fail for the third."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .answers import CHAT, MESSAGES, RESPONSES

if TYPE_CHECKING:
    from pytest_vllm import Recording, Request, Server

CITIES = ("Oslo", "Paris", "Rome")
NAMES = [f"weather_in_{city.casefold()}" for city in CITIES]
ASKED = f"What is the weather in Oslo, in Paris and in Rome? Call {', call '.join(NAMES)}."
#: Tokens for three calls, and for thoughts before them where those can't be switched off.
ROOM, ROOM_TO_THINK = 160, 1024
USAGE = {"include_usage": True}


def three(server: Server, switch: Recording, path: str) -> Request:
    """A stream for which three calls are due, of three tools."""
    functions = [_function(name, city) for name, city in zip(NAMES, CITIES, strict=True)]
    calm = server.can("reasoning") and switch.status == 200 and server.takes(path, "chat_template_kwargs")
    room = ROOM_TO_THINK if server.can("reasoning") and not calm else ROOM
    turns = [{"role": "user", "content": ASKED}]
    bodies: dict[str, dict[str, Any]] = {
        CHAT: {
            "messages": turns,
            "tools": [{"type": "function", "function": one} for one in functions],
            "tool_choice": "required",
        },
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
    shared: dict[str, Any] = {limit: room, "temperature": 0, "stream": True}
    shared |= {"chat_template_kwargs": {"enable_thinking": False}} if calm else {}
    shared |= {"stream_options": USAGE} if path == CHAT else {}
    return server.post(path, {**bodies[path], **shared}, expect=None)


def _function(name: str, city: str) -> dict[str, Any]:
    given = {
        "type": "object",
        "properties": {"city": {"const": city, "type": "string"}},
        "required": ["city"],
    }
    return {"name": name, "description": f"Tells the weather in {city}.", "parameters": given}


def _messages_tool(one: dict[str, Any]) -> dict[str, Any]:
    return {"name": one["name"], "description": one["description"], "input_schema": one["parameters"]}
