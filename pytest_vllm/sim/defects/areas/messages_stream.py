"""Defects of Messages streams: events, blocks, counts, reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.events import Event
from pytest_vllm.sim.defects.make import spoil_events
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import MESSAGES, only

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.reply import Exchange

HERE = (MESSAGES,)
Events = list[Event]
ZERO = {"input_tokens": 0, "output_tokens": 0}


def _type(event: Event) -> str:
    return str(event.data.get("type")) if isinstance(event.data, dict) else ""


def _events(name: str, summary: str, change: Callable[[Events], Events], **facts: Any) -> None:
    def changed(events: Events, exchange: Exchange) -> Events:
        del exchange
        return change(events)

    add(name, summary, {"events": only(HERE, changed)}, **facts)


def _without(*names: str) -> Callable[[Events], Events]:
    return lambda events: [event for event in events if _type(event) not in names]


def _each(name: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Events], Events]:
    def changed(events: Events) -> Events:
        for event in events:
            if _type(event) == name:
                change(event.data)
        return events

    return changed


def _uncounted(events: Events) -> Events:
    for event in events:
        if _type(event) == "message_start":
            event.data["message"]["usage"] = dict(ZERO)
    return events


def _upper(event: dict[str, Any]) -> None:
    if event["delta"].get("text"):
        event["delta"]["text"] = event["delta"]["text"].upper()


def _cut_input(event: dict[str, Any]) -> None:
    if event["delta"].get("partial_json"):
        event["delta"]["partial_json"] = event["delta"]["partial_json"].replace("}", "")


def _as_text(event: dict[str, Any]) -> None:
    if event["content_block"].get("type") == "tool_use":
        event["content_block"] = {"type": "text", "text": ""}


def _at_once(events: Events) -> Events:
    last = max((event.when for event in events), default=0.0)
    texts = [e for e in events if _type(e) == "content_block_delta" and e.data["delta"].get("text")]
    for event in texts[1:]:
        texts[0].data["delta"]["text"] += event.data["delta"]["text"]
    for event in events:
        event.when = last
    return [event for event in events if event not in texts[1:]]


def _broken(events: Events) -> Events:
    error = {"type": "error", "error": {"type": "api_error", "message": "boom"}}
    return [*events[:3], Event(error, name="error", when=events[3].when), *events[3:]]


_events(
    "messages.never-begins",
    "A stream does not begin with its message.",
    _without("message_start"),
    catches=["messages.stream.begins"],
)
_events(
    "messages.never-stops",
    "No event ends a stream.",
    _without("message_stop"),
    faults=["PROXY-001"],
    catches=["messages.stream.ends"],
)
_events(
    "messages.blocks-never-begin",
    "Pieces arrive of blocks that never began.",
    _without("content_block_start"),
    faults=["MSG-004"],
    catches=["messages.stream.inside", "messages.stream.blocks"],
)
_events(
    "messages.blocks-never-end",
    "Blocks begin and never end.",
    _without("content_block_stop"),
    faults=["MSG-004"],
    catches=["messages.stream.blocks"],
)
spoil_events(
    "messages.blocks-counted-from-one",
    "Blocks are counted from 1.",
    HERE,
    "index",
    lambda number: number + 1,
    faults=["MSG-004"],
    catches=["messages.stream.blocks"],
)
_events(
    "messages.start-uncounted",
    "The first event of a stream counts no tokens.",
    _uncounted,
    faults=["MSG-005"],
    catches=["messages.stream.usage-first"],
)
_events(
    "messages.end-uncounted",
    "The last events of a stream count no tokens.",
    _each("message_delta", lambda event: event.update(usage=dict(ZERO))),
    faults=["MSG-005"],
    catches=["messages.stream.usage"],
)
_events(
    "messages.streams-end-turn",
    "Every stream, whatever ended it, stopped at the end of its turn.",
    _each(
        "message_delta", lambda event: event.update(delta={"stop_reason": "end_turn", "stop_sequence": None})
    ),
    faults=["MSG-008"],
    catches=["messages.stream.reason", "messages.stream.sequence", "messages.call.streamed"],
)
_events(
    "messages.reason-at-once",
    "A message that begins tells already why it stopped.",
    _each("message_start", lambda event: event["message"].update(stop_reason="end_turn")),
    catches=["messages.stream.reason-last"],
)
_events(
    "messages.streams-say-otherwise",
    "A stream says something else than a whole answer.",
    _each("content_block_delta", _upper),
    catches=["messages.stream.same-text"],
)
_events(
    "messages.lump",
    "A gateway holds a stream back until it is whole.",
    _at_once,
    faults=["PROXY-002"],
    catches=["messages.stream.pieces"],
)
_events(
    "messages.error-inside",
    "A stream of a valid request holds an error.",
    _broken,
    catches=["messages.stream.no-error"],
)
_events(
    "messages.nothing-relayed",
    "A gateway throws the events of a stream away.",
    lambda events: events[:0],
    faults=["PROXY-001"],
    catches=["messages.stream.filled"],
)
_events(
    "messages.input-cut",
    "The end of a call's input is not sent.",
    _each("content_block_delta", _cut_input),
    faults=["MSG-004"],
    catches=["messages.call.joined"],
)
_events(
    "messages.streamed-calls-as-text",
    "In a stream a call appears as text.",
    _each("content_block_start", _as_text),
    faults=["MSG-009"],
    catches=["messages.call.streamed", "messages.stream.inside"],
)


@defect("messages.unnamed", on="events", paths=HERE, catches=["messages.stream.named"])
def unnamed(events: Events, exchange: Exchange) -> Events:
    """Events carry no names."""
    del exchange
    for event in events:
        event.name = ""
    return events


@defect("messages.streams-refused", on="head", paths=HERE, catches=["messages.stream.answered"])
def streams_refused(head: tuple[int, Any], exchange: Exchange) -> tuple[int, Any]:
    """Streams are answered with 500."""
    del exchange
    return 500, head[1]


@defect("messages.cut-off", on="close", paths=HERE, faults=["PROXY-005"], catches=["messages.stream.clean"])
def cut_off(ends: str, exchange: Exchange) -> str:
    """A proxy cuts a stream."""
    del ends, exchange
    return "cut"
