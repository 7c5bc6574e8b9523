"""Long contents of requests: lines to be said again, conversations of several parts, two tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_vllm import Server

WEATHER = {"weather_in_oslo": "Oslo", "weather_in_paris": "Paris"}
TWO = "What is the weather in Oslo and what is it in Paris? Call weather_in_oslo and call weather_in_paris."

#: What routes turn most easily: line breaks, blanks in a row, marks of HTML, letters beyond ASCII.
LINES = 'red & green\n\n  blue <b>naïve</b> 東京\n- "grey"\nend'
FORMS: list[dict[str, Any]] = [{"id": "whole", "set": {}}, {"id": "streamed", "set": {"stream": True}}]

#: Parts of a conversation, each of more tokens than all that may stand between two of them.
_HEADS = ("Log 1", "Log 2", "Note 3", "Note 4", "Find 5", "Find 6")
SAID = tuple(
    f"{head}: {', '.join(f'{19 * number + at} knots of wind' for at in range(20))}."
    for number, head in enumerate(_HEADS, start=1)
)
_CALL = {"name": "note_bird", "arguments": json.dumps({"bird": "heron"})}


def lines_form(server: Server) -> dict[str, Any]:
    """The lines as a wish, and as the only thing that can be said where the version takes a pattern."""
    wish = {"given": f"Repeat this text: {LINES}"}
    able = server.takes("/v1/responses", "structured_outputs") and server.can("structured-output")
    return {**wish, "structured_outputs": {"regex": LINES.replace("\n", "\\n")}} if able else wish


def given_parts(*, apart: bool = False) -> list[dict[str, Any]]:
    """The conversation as items; what the model said in one part, or in two."""
    asked = [{"type": "input_text", "text": text} for text in SAID[:2]]
    words = SAID[2:4] if apart else ("".join(SAID[2:4]),)
    told = [{"type": "output_text", "text": text, "annotations": []} for text in words]
    said = {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": told}
    made = {"type": "function_call", "id": "fc_1", "call_id": "abcdE1234", **_CALL}
    found = {"type": "function_call_output", "call_id": "abcdE1234", "output": "\n".join(SAID[4:])}
    return [{"type": "message", "role": "user", "content": asked}, said, made, found]


#: The same as a chat.
COUNTED: list[dict[str, Any]] = [
    {"role": "user", "content": "".join(SAID[:2])},
    {
        "role": "assistant",
        "content": "".join(SAID[2:4]),
        "tool_calls": [{"id": "abcdE1234", "type": "function", "function": _CALL}],
    },
    {"role": "tool", "tool_call_id": "abcdE1234", "content": "\n".join(SAID[4:])},
]


def two_tools() -> list[dict[str, Any]]:
    """Two functions, each of which can be called in one way only."""
    return [
        {
            "type": "function",
            "name": name,
            "description": f"Tells the weather in {city}.",
            "parameters": _of(city),
        }
        for name, city in WEATHER.items()
    ]


def _of(city: str) -> dict[str, Any]:
    only = {"city": {"type": "string", "const": city}}
    return {"type": "object", "properties": only, "required": ["city"], "additionalProperties": False}
