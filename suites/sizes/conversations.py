"""Conversations of agents in the words of each route: many turns, and tool results in between."""

from __future__ import annotations

from typing import Any

Turn = dict[str, Any]

TOOL = "read_line"
#: Turns of the long conversation, and tool results in it: a question, a call, its result, an answer.
ROUNDS, TALK = 12, 4


def parameters() -> dict[str, Any]:
    """The schema of the tool."""
    return {"type": "object", "properties": {"line": {"type": "integer"}}, "required": ["line"]}


def chat_tool(name: str = TOOL) -> dict[str, Any]:
    """A function as chat offers it."""
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters()}}


def plain(turns: int) -> list[Turn]:
    """A conversation without tools, of an odd number of turns; each says what no other says."""
    roles = ("user", "assistant")
    return [
        {"role": roles[at % 2], "content": f"Turn {at + 1} is about bird {7 * at + 3}."}
        for at in range(turns)
    ]


def chat_agent() -> list[Turn]:
    """Forty turns and more with twelve tool results, for chat."""
    turns = plain(TALK)
    for at in range(ROUNDS):
        call = {"name": TOOL, "arguments": f'{{"line": {at}}}'}
        turns += [
            {"role": "user", "content": f"Read line {at}."},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": _id(at), "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": _id(at), "content": _line(at)},
            {"role": "assistant", "content": f"Line {at} is read."},
        ]
    return [*turns, {"role": "user", "content": "Go on."}]


def message_agent() -> list[Turn]:
    """The same for Messages, where a result is a block of the user's turn."""
    turns = plain(TALK)
    for at in range(ROUNDS):
        used = {"type": "tool_use", "id": _id(at), "name": TOOL, "input": {"line": at}}
        result = {"type": "tool_result", "tool_use_id": _id(at), "content": _line(at)}
        turns += [
            {"role": "user", "content": f"Read line {at}."},
            {"role": "assistant", "content": [used]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": f"Line {at} is read."},
        ]
    return [*turns, {"role": "user", "content": "Go on."}]


def response_agent() -> list[Turn]:
    """The same for Responses, where calls and results are items of their own."""
    items = plain(TALK)
    for at in range(ROUNDS):
        call = {"type": "function_call", "call_id": _id(at), "name": TOOL, "arguments": f'{{"line": {at}}}'}
        items += [
            {"role": "user", "content": f"Read line {at}."},
            call,
            {"type": "function_call_output", "call_id": _id(at), "output": _line(at)},
            {"role": "assistant", "content": f"Line {at} is read."},
        ]
    return [*items, {"role": "user", "content": "Go on."}]


def _id(at: int) -> str:
    return f"call{at:05}"


def _line(at: int) -> str:
    return f"Line {at} says {9 * at + 11} herons."
