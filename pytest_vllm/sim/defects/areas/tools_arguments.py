"""Defects of tool calls: what becomes of their arguments."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import HERE, STREAM, arguments, threads, values
from pytest_vllm.sim.defects.registry import defect

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

VALUES = ["tools.forced.exact", "tools.forced.exact-stream", "tools.value", "tools.value-stream"]
STREAMED = ["tools.value-stream", "tools.calls.object", "tools.forced.parity"]

arguments(
    "tools.arguments-unclosed",
    "The last brace of streamed arguments is never sent.",
    lambda text: text.removesuffix("}"),
    STREAM,
    area="tools",
    faults=["TOOL-003", "TOOL-051", "TOOL-085"],
    versions="0.7.3, 0.17, 0.21 and 0.22 with a stream interval above 1, or with drafted tokens",
    catches=STREAMED,
)
arguments(
    "tools.brace-lost",
    "Arguments with objects in them lack their last brace.",
    lambda text: text.removesuffix("}"),
    area="tools",
    faults=["TOOL-061"],
    versions="0.10.0",
    catches=["tools.value", "tools.value-stream", "tools.calls.object"],
)
arguments(
    "tools.brace-doubled",
    "Arguments open with two braces.",
    lambda text: "{" + text,
    area="tools",
    faults=["TOOL-063"],
    versions="0.11",
    catches=["tools.value", "tools.calls.object"],
)
arguments(
    "tools.brace-extra",
    "Streamed arguments end in a brace too many.",
    lambda text: text + "}",
    STREAM,
    area="tools",
    faults=["TOOL-012"],
    versions="0.6.3.post1",
    catches=STREAMED,
)
arguments(
    "tools.arguments-end-early",
    "Streamed arguments end in the middle of a text.",
    lambda text: text[: max(len(text) * 3 // 4, 2)] if len(text) > 8 else text,
    STREAM,
    area="tools",
    faults=["TOOL-033", "TOOL-084"],
    versions="GLM with drafted tokens, until 2026",
    catches=STREAMED,
)
arguments(
    "tools.arguments-end-at-number",
    "Streamed arguments end where a value that is no text begins.",
    lambda text: re.split(r"(?<=: )(?=[-\dtfn\[{])", text, maxsplit=1)[0],
    STREAM,
    area="tools",
    faults=["TOOL-086"],
    catches=["tools.value-stream", "tools.calls.object"],
)
arguments(
    "tools.pieces-swapped",
    "Pieces of streamed arguments arrive out of their order.",
    lambda text: text[:3] + text[5:8] + text[3:5] + text[8:] if len(text) > 8 else text,
    STREAM,
    area="tools",
    faults=["TOOL-098"],
    catches=STREAMED,
)
arguments(
    "tools.quote-lost",
    "Texts in streamed arguments lack their opening quote and double their last letter.",
    lambda text: re.sub(r'": "(\w*)(\w)"', r'": \1\2\2"', text),
    STREAM,
    area="tools",
    faults=["TOOL-037"],
    catches=["tools.value-stream", "tools.calls.object"],
)
arguments(
    "tools.empty-arguments",
    "The arguments of a streamed call without parameters are empty.",
    lambda text: "" if json_of(text) == {} else text,
    STREAM,
    area="tools",
    faults=["TOOL-015"],
    versions="0.11",
    catches=["tools.empty-stream"],
)
arguments(
    "tools.list-as-text",
    "Lists in arguments are texts that hold a list.",
    values(lambda value: json.dumps(value) if isinstance(value, list) else value),
    area="tools",
    faults=["TOOL-005"],
    catches=["tools.value", "tools.calls.valid"],
)
arguments(
    "tools.numbers-as-text",
    "Numbers in arguments are texts.",
    values(lambda value: str(value) if type(value) in (int, float) else value),
    area="tools",
    faults=["TOOL-090"],
    versions="0.10.0",
    catches=["tools.value", "tools.calls.valid"],
)
arguments(
    "tools.words-of-python",
    "True, false and null in arguments are texts in Python's words.",
    values(lambda value: str(value) if value is None or isinstance(value, bool) else value),
    area="tools",
    catches=["tools.value"],
)
arguments(
    "tools.integers-rounded",
    "Integers in arguments go through a number of 32 bits.",
    values(lambda value: float(f"{value:.7g}") if type(value) is int else value),
    area="tools",
    catches=["tools.value"],
)
arguments(
    "tools.text-trimmed",
    "Texts in arguments lose the white space around them.",
    values(lambda value: value.strip() if isinstance(value, str) else value),
    area="tools",
    catches=["tools.value"],
)
arguments(
    "tools.text-escaped-twice",
    "Letters beyond ASCII in arguments are escaped twice.",
    values(
        lambda value: (
            value.encode("ascii", "backslashreplace").decode()
            if isinstance(value, str) and not value.isascii()
            else value
        )
    ),
    area="tools",
    catches=["tools.value"],
)
arguments(
    "tools.line-ends-lost",
    "Line ends in arguments are spaces.",
    values(lambda value: value.replace("\n", " ") if isinstance(value, str) and "\n" in value else value),
    area="tools",
    catches=["tools.value"],
)
arguments(
    "tools.markers-stripped",
    "Markup within the texts of arguments is taken out.",
    values(
        lambda value: (
            re.sub(r"</?\w+>|\[\w+\]|<\|\w+\|>", "", value)
            if isinstance(value, str) and re.search(r"</?\w+>|\[TOOL|<\|", value)
            else value
        )
    ),
    area="tools",
    catches=["tools.marked", "tools.marked-stream"],
)
arguments(
    "tools.marker-in-argument",
    "The marker that closes a parameter is part of its value, and the JSON stays open.",
    lambda text: re.sub(r'"?\}$', "</\uff5cDSML\uff5cparameter", text) if "2>&1" in text else text,
    area="tools",
    faults=["TOOL-066"],
    versions="0.23.1rc1",
    catches=["tools.value", "tools.value-stream"],
)
arguments(
    "tools.long-argument-cut",
    "Arguments are cut where a buffer of fixed size ends.",
    lambda text: text[:512],
    area="tools",
    faults=["TOOL-040"],
    versions="until 0.18",
    catches=["tools.long", "tools.long-stream"],
)
arguments(
    "tools.envelope-in-arguments",
    "The arguments hold the name and the arguments.",
    lambda text: json.dumps({"name": "f", "arguments": json_of(text)}),
    area="tools",
    faults=["TOOL-056"],
    versions="0.24",
    catches=["tools.value", "tools.calls.valid"],
)
arguments(
    "tools.arguments-of-another",
    "A call has the arguments that another request was meant to get.",
    values(lambda value: "plain words" if isinstance(value, str) else value),
    area="tools",
    catches=["tools.value"],
)
arguments(
    "tools.property-more",
    "Arguments have a property that the schema does not know.",
    lambda text: json.dumps({**found, "extra": 1}) if isinstance(found := json_of(text), dict) else text,
    area="tools",
    catches=["tools.value", "tools.calls.valid", "tools.empty"],
)


@defect(
    "tools.last-piece-lost",
    on="events",
    paths=HERE,
    faults=["STREAM-005"],
    versions="0.18 with GLM parsers",
    catches=["tools.value-stream", "tools.calls.object"],
)
def last_piece_lost(events: list[Event], exchange: Exchange) -> list[Event]:
    """The last piece of a call's arguments falls together with the finish reason, and is not passed on."""
    del exchange
    for parts in threads(events).values():
        pieces = [part["function"] for part in parts if part.get("function", {}).get("arguments")]
        if len(pieces) > 1:
            pieces[-1]["arguments"] = ""
    return events


def json_of(text: str) -> Any:
    """The text as JSON; itself when it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


arguments(
    "tools.integers-as-numbers",
    "Integers in arguments are written with a point.",
    values(lambda value: float(value) if type(value) is int else value),
    area="tools",
    catches=["tools.calls.valid"],
)
