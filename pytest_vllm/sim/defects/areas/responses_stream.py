"""Defects of Responses streams: events, their numbers, their items, their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.events import Event
from pytest_vllm.sim.defects.make import spoil_events
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import RESPONSES, only

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.reply import Exchange

HERE = (RESPONSES,)
ENDS = ("response.completed", "response.incomplete")
Events = list[Event]


def _type(event: Event) -> str:
    return str(event.data.get("type")) if isinstance(event.data, dict) else ""


def _numbered(events: Events) -> Events:
    for number, event in enumerate(events):
        if isinstance(event.data, dict) and "sequence_number" in event.data:
            event.data["sequence_number"] = number
    return events


def _events(name: str, summary: str, change: Callable[[Events], Events], **facts: Any) -> None:
    """Streams of this interface, changed; their events stay numbered without gaps."""

    def changed(events: Events, exchange: Exchange) -> Events:
        del exchange
        return _numbered(change(events))

    add(name, summary, {"events": only(HERE, changed)}, **facts)


def _without(*names: str) -> Callable[[Events], Events]:
    return lambda events: [event for event in events if _type(event) not in names]


def _final(**changes: Any) -> Callable[[Events], Events]:
    def change(events: Events) -> Events:
        for event in events:
            if _type(event) in ENDS:
                event.data["response"] |= changes
        return events

    return change


def _renamed(events: Events) -> Events:
    for event in events:
        if _type(event) == "response.incomplete":
            event.name = event.data["type"] = "response.completed"
    return events


def _lost(events: Events) -> Events:
    kept = []
    for number, event in enumerate(events):
        if not (_type(event).endswith(".delta") and number % 3 == 0):
            kept.append(event)
    return kept


def _at_once(events: Events) -> Events:
    last = max((event.when for event in events), default=0.0)
    for event in events:
        event.when = last
    return events


def _in_one(events: Events) -> Events:
    deltas = [event for event in events if _type(event) == "response.output_text.delta"]
    for event in deltas[1:]:
        deltas[0].data["delta"] += event.data["delta"]
    return [event for event in events if event not in deltas[1:]]


def _said_otherwise(events: Events) -> Events:
    for event in events:
        for holder in (event.data, event.data.get("part"), *_texts(event)):
            for key in ("text", "delta"):
                if isinstance(holder, dict) and isinstance(holder.get(key), str):
                    holder[key] = holder[key].upper()
    return events


def _texts(event: Event) -> list[Any]:
    items = [event.data.get("item") or {}, *(event.data.get("response") or {}).get("output", ())]
    return [part for item in items for part in item.get("content") or ()]


def _broken(events: Events) -> Events:
    error = {"error": {"message": "boom", "type": "InternalServerError", "code": 500}}
    return [*events[:4], Event(error, name="error", when=events[4].when), *events[4:]]


spoil_events(
    "responses.numbers-repeat",
    "All events of a stream carry the number 0.",
    HERE,
    "sequence_number",
    0,
    catches=["responses.stream.numbered"],
)
_events(
    "responses.never-in-progress",
    "A stream does not say that the response is in progress.",
    _without("response.in_progress"),
    catches=["responses.stream.begins"],
)
_events(
    "responses.never-over",
    "No event ends a stream, and its client waits for ever.",
    _without(*ENDS),
    faults=["PROXY-001"],
    catches=["responses.stream.ends"],
)
_events(
    "responses.nothing-relayed",
    "A gateway throws the events of a stream away.",
    lambda events: events[:0],
    faults=["PROXY-001"],
    catches=["responses.stream.filled"],
)
_events(
    "responses.end-contradicts",
    "A stream that is cut short ends in response.completed, whose response is incomplete.",
    _renamed,
    faults=["RESP-008"],
    versions="0.29.0 to 0.32.0",
    catches=["responses.stream.end-agrees"],
)
_events(
    "responses.end-completed",
    "A stream that is cut short says that it is complete.",
    lambda events: _renamed(_final(status="completed", incomplete_details=None)(events)),
    faults=["RESP-008", "RESP-010"],
    catches=["responses.stream.status"],
)
_events(
    "responses.end-uncounted",
    "The last event of a stream counts no tokens.",
    _final(usage={"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}),
    faults=["RESP-010"],
    catches=["responses.stream.usage"],
)
_events(
    "responses.end-empty",
    "The response in the last event holds no items, and another id.",
    _final(output=[], id="resp_0"),
    catches=["responses.items.same-at-the-end", "responses.stream.one-id"],
)
_events(
    "responses.end-other-settings",
    "The last event tells other settings than the first one, and its items are complete although cut short.",
    lambda events: _closed_as_complete(_final(temperature=0.3, output=[])(events)),
    faults=["RESP-009"],
    catches=["responses.stream.whole-end", "responses.cut.stream-item"],
)
_events(
    "responses.items-never-closed",
    "Items are announced and never closed.",
    _without("response.output_item.done"),
    catches=["responses.items.closed"],
)
_events(
    "responses.items-never-announced",
    "Pieces arrive of items that were never announced.",
    _without("response.output_item.added"),
    catches=["responses.items.announced"],
)
_events(
    "responses.parts-never-announced",
    "Text arrives of parts that were never announced.",
    _without("response.content_part.added", "response.reasoning_part.added"),
    catches=["responses.items.parts"],
)
spoil_events(
    "responses.items-counted-from-one",
    "Items are counted from 1.",
    HERE,
    "output_index",
    lambda number: number + 1,
    catches=["responses.items.indices"],
)
spoil_events(
    "responses.items-renamed",
    "Events inside an item carry another id than the item.",
    HERE,
    "item_id",
    "msg_0",
    catches=["responses.items.named"],
)
_events("responses.pieces-lost", "Every third piece is lost.", _lost, catches=["responses.items.joined"])
_events(
    "responses.lump",
    "A gateway holds a stream back until it is whole.",
    lambda events: _in_one(_at_once(events)),
    faults=["PROXY-002"],
    catches=["responses.stream.pieces"],
)
_events(
    "responses.streams-say-otherwise",
    "A stream says something else than the same answer in one piece.",
    _said_otherwise,
    catches=["responses.stream.same-text"],
)
_events(
    "responses.error-inside",
    "A stream of a valid request holds an error.",
    _broken,
    catches=["responses.stream.no-error"],
)


def _closed_as_complete(events: Events) -> Events:
    for event in events:
        if _type(event) == "response.output_item.done":
            event.data["item"]["status"] = "completed"
    return events


@defect("responses.unnamed", on="events", paths=HERE, catches=["responses.stream.named"])
def unnamed(events: Events, exchange: Exchange) -> Events:
    """Events carry no names."""
    del exchange
    for event in events:
        event.name = ""
    return events


@defect("responses.cut-json", on="events", paths=HERE, catches=["responses.stream.json"])
def cut_json(events: Events, exchange: Exchange) -> Events:
    """One event of a stream is cut JSON."""
    del exchange
    if len(events) > 5:
        events[5].data = '{"type": "response.output_text.delta", "delta'
    return events


@defect("responses.streams-refused", on="head", paths=HERE, catches=["responses.stream.answered"])
def streams_refused(head: tuple[int, Any], exchange: Exchange) -> tuple[int, Any]:
    """Streams are answered with 500."""
    del exchange
    return 500, head[1]


@defect("responses.cut-off", on="close", paths=HERE, faults=["PROXY-005"], catches=["responses.stream.clean"])
def cut_off(ends: str, exchange: Exchange) -> str:
    """A proxy cuts a stream."""
    del ends, exchange
    return "cut"
