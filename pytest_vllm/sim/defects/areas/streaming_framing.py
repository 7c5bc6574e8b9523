"""Defects of the bytes of a stream: framing, end marks, errors in the middle, pace."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.events import DONE, Event
from pytest_vllm.sim.defects.edit import content, set_text, text_of
from pytest_vllm.sim.defects.make import without_events
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, only

if TYPE_CHECKING:
    from pytest_vllm.sim.api.reply import Exchange

BOTH = (CHAT, COMPLETIONS)
Head = tuple[int, list[tuple[str, str]]]

without_events(
    "streaming.no-done",
    "Streams end without the [DONE] mark.",
    BOTH,
    lambda event: event.is_done,
    catches=["stream.framing.done"],
)


@defect("streaming.two-done", on="events", paths=BOTH, catches=["stream.framing.done"])
def two_done(events: list[Event], exchange: Exchange) -> list[Event]:
    """The end mark comes twice."""
    del exchange
    return [*events, *[event for event in events if event.is_done]]


@defect("streaming.chunk-after-done", on="events", paths=BOTH, catches=["stream.framing.done-last"])
def chunk_after_done(events: list[Event], exchange: Exchange) -> list[Event]:
    """The last chunk comes after the end mark."""
    del exchange
    if len(events) > 1 and events[-1].is_done:
        events[-1].when = events[-2].when
        events[-2:] = [events[-1], events[-2]]
    return events


def _says_gzip(head: Head, exchange: Exchange) -> Head:
    del exchange
    return head[0], [*head[1], ("content-encoding", "gzip")]


def _gzipped(data: bytes, exchange: Exchange) -> bytes:
    del exchange
    return gzip.compress(data, mtime=0)


add(
    "streaming.compressed",
    "Streams are compressed though nobody asked for it.",
    {"head": only((COMPLETIONS,), _says_gzip), "chunk": only((COMPLETIONS,), _gzipped)},
    catches=["stream.framing.uncompressed", "answers.plain"],
)


@defect("streaming.last-event-open", on="chunk", paths=BOTH, catches=["stream.framing.closed"])
def last_event_open(data: bytes, exchange: Exchange) -> bytes:
    """The blank line after the end mark is missing."""
    del exchange
    return data.removesuffix(b"\n") if data == b"data: [DONE]\n\n" else data


@defect("streaming.lines-of-its-own", on="chunk", paths=BOTH, catches=["stream.framing.lines"])
def lines_of_its_own(data: bytes, exchange: Exchange) -> bytes:
    """Log lines are mixed into the stream."""
    del exchange
    return b"INFO 11-27 engine step\n" + data if b"finish_reason" in data else data


@defect("streaming.named-events", on="chunk", paths=BOTH, catches=["stream.framing.unnamed"])
def named_events(data: bytes, exchange: Exchange) -> bytes:
    """Events carry a name, as those of another API do."""
    del exchange
    return b"event: chunk\n" + data if data.startswith(b"data: {") else data


@defect("streaming.python-text", on="chunk", paths=(COMPLETIONS,), catches=["stream.framing.json"])
def python_text(data: bytes, exchange: Exchange) -> bytes:
    """Chunks are the text of Python values instead of JSON."""
    del exchange
    return data.replace(b"null", b"None").replace(b"false", b"False")


@defect("streaming.keeps-alive-by-data", on="chunk", paths=BOTH, catches=["stream.framing.json"])
def keeps_alive_by_data(data: bytes, exchange: Exchange) -> bytes:
    """An event of the text `ping` keeps the connection open."""
    del exchange
    return b"data: ping\n\n" + data if data == b"data: [DONE]\n\n" else data


@defect("streaming.batch-empty", on="events", paths=(COMPLETIONS,), catches=["stream.framing.filled"])
def batch_empty(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream of several prompts holds nothing but its end mark."""
    several = isinstance((exchange.body or {}).get("prompt"), list)
    return [event for event in events if event.is_done or not several]


def _error(message: str, code: int) -> dict[str, Any]:
    return {"error": {"message": message, "type": "InternalServerError", "param": None, "code": code}}


@defect(
    "streaming.constrained-fails-midway",
    on="events",
    paths=BOTH,
    faults=["STREAM-022", "STREAM-029", "ROBUST-007"],
    catches=["stream.no-error"],
)
def constrained_fails_midway(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream under a constraint ends in an error after some tokens, under HTTP 200."""
    if not (exchange.body or {}).get("structured_outputs") or len(events) < 4:
        return events
    broken = Event(_error("Failed to advance FSM for request", 500), at=events[2].at, choice=events[2].choice)
    broken.when = events[-1].when
    return [*events[:3], broken, events[-1]]


@defect(
    "streaming.choices-break-off",
    on="events",
    paths=BOTH,
    faults=["STREAM-031"],
    versions="0.5.3.post1",
    catches=["stream.finish.once"],
)
def choices_break_off(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream of several choices ends after its first tokens."""
    return events[:4] if (exchange.body or {}).get("n", 1) > 1 else events


def _plain(head: Head, exchange: Exchange) -> Head:
    """Streams are labelled as JSON."""
    del exchange
    return head[0], [("content-type", "application/json")]


add(
    "streaming.labelled-json",
    "Streams are labelled as JSON, so that clients read them at the end.",
    {"head": only(BOTH, _plain)},
    catches=["stream.framing.content-type"],
)


def _lump(events: list[Event], exchange: Exchange) -> list[Event]:
    """All events are sent when the last one is there."""
    del exchange
    for event in events:
        event.when, event.at, event.choice = events[-1].when, events[-1].at, events[-1].choice
    return events


add(
    "streaming.held-back",
    "All events of a stream are sent at its end: something between holds them back.",
    {"events": only(BOTH, _lump), "step": lambda seconds, _engine: max(seconds, 0.012)},
    faults=["PROXY-002"],
    catches=["stream.pace.over-time"],
)


@defect("streaming.one-piece", on="events", paths=BOTH, catches=["stream.pace.pieces"])
def one_piece(events: list[Event], exchange: Exchange) -> list[Event]:
    """The whole text comes as one piece at the end."""
    del exchange
    pieces = [(event, choice) for event, choice in content(events) if choice.get("index") == 0]
    if len(pieces) > 1:
        text = "".join(text_of(choice) for _, choice in pieces)
        for _, choice in pieces:
            set_text(choice, "")
        set_text(pieces[-1][1], text)
    return events


@defect(
    "streaming.flood-of-nothing",
    on="events",
    paths=(COMPLETIONS,),
    faults=["STREAM-015"],
    catches=["stream.framing.lines", "stream.no-empty-flood", "stream.pace.few-chunks"],
)
def flood_of_nothing(events: list[Event], exchange: Exchange) -> list[Event]:
    """Twenty empty chunks, with names of their own, come between any two pieces of text."""
    del exchange
    made: list[Event] = []
    for event, choice in content(events):
        empty = {**event.data, "choices": [{**choice, "text": "", "finish_reason": None, "logprobs": None}]}
        made += [Event(empty, name="wait", choice=event.choice, at=event.at, when=event.when)] * 20 + [event]
    return [*made, *[event for event in events if event.data == DONE or not event.data.get("choices")]]


def _samples(exchange: Exchange) -> bool:
    """Streams of several choices: few, so that a run does not wait for long."""
    return bool((exchange.body or {}).get("n", 1) > 1)


@defect(
    "streaming.left-open",
    on="close",
    paths=BOTH,
    faults=["STREAM-019", "PROXY-001"],
    catches=["stream.end.soon"],
)
def left_open(how: str, exchange: Exchange) -> str:
    """After the end mark the connection of a stream stays open."""
    return "open" if _samples(exchange) else how


@defect("streaming.cut-off", on="close", paths=BOTH, faults=["PROXY-005"], catches=["stream.end.clean"])
def cut_off(how: str, exchange: Exchange) -> str:
    """The connection of a stream is cut instead of ended."""
    return "cut" if _samples(exchange) else how


@defect(
    "streaming.stalls",
    on="events",
    paths=(COMPLETIONS,),
    catches=["stream.parity.completion-text", "stream.pace.no-stall"],
)
def stalls(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream stops for a quarter of a minute, and loses the piece at which it stopped."""
    del exchange
    pieces = [(event, choice) for event, choice in content(events) if choice.get("index") == 0]
    if len(pieces) > 4:
        set_text(pieces[3][1], "")
        for event in events[events.index(pieces[3][0]) :]:
            event.when += 15
    return events
