"""The items of a stream: announced, filled, closed, and the same at the end."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pytest_vllm import MUST, Recordings, Server, check, listed, need

from .items import (
    DELTAS,
    STREAMS_FROM,
    added,
    applies,
    events,
    final,
    finished,
    items,
    joined,
    kind,
    streams,
    text,
)

SPEC = "openai:responses-streaming"
NEEDS = ("responses", "stream")
AREA = ("responses.",)
#: Events that belong to an item, by what they begin with.
INSIDE = ("response.content_part", "response.output_text", "response.reasoning_", "response.function_call")
BEGINS = ("response.content_part.added", "response.reasoning_part.added")
CLOSES = ("response.content_part.done", "response.reasoning_part.done")
TEXTS = ("response.output_text.", "response.reasoning_text.")


def gathered(server: Server, recordings: Recordings) -> list[Any]:
    """Every stream that announced an item."""
    applies(server, STREAMS_FROM, "streams responses")
    found = [r for r in streams(recordings) if added(r) or finished(r)]
    need(found, "no stream announced an item")
    return found


@check("responses.items.announced", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_announced(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Every piece belongs to an item that was announced before and is still open."""
    wrong = []
    applies(vllm_server, STREAMS_FROM, "streams responses")
    found = [r for r in streams(vllm_recordings) if events(r)]
    need(found, "no stream held an event")
    for recording in found:
        open_items: set[Any] = set()
        for event in events(recording):
            index = event.get("output_index")
            if kind(event) == "response.output_item.added":
                open_items.add(index)
            elif kind(event) == "response.output_item.done":
                open_items.discard(index)
            elif kind(event).startswith(INSIDE) and index not in open_items:
                wrong.append(f"{recording.key}: {kind(event)} of item {index}")

    assert not wrong, f"no such item is open: {listed(wrong)}"


@check("responses.items.closed", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_closed(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Every item that is announced is closed once."""
    counts = {
        r.key: tuple(
            Counter(e.get("output_index") for e in events(r) if kind(e) == f"response.output_item.{what}")
            for what in ("added", "done")
        )
        for r in gathered(vllm_server, vllm_recordings)
    }
    wrong = [f"{key}: announced {dict(a)}, closed {dict(d)}" for key, (a, d) in counts.items() if a != d]

    assert not wrong, listed(wrong)


@check("responses.items.indices", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_indices(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Items are counted from 0, in the order in which they are announced."""
    found = {
        r.key: [e.get("output_index") for e in events(r) if kind(e) == "response.output_item.added"]
        for r in gathered(vllm_server, vllm_recordings)
    }
    wrong = [f"{key}: {numbers}" for key, numbers in found.items() if numbers != list(range(len(numbers)))]

    assert not wrong, listed(wrong)


@check(
    "responses.items.named", MUST, spec="fault:ggml-org/llama.cpp/issues/20607", needs=NEEDS, exchanges=AREA
)
def test_named(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Every event inside an item carries the item's id."""
    wrong = [
        f"{r.key}: {kind(e)} names {e.get('item_id')!r}, not {added(r)[e['output_index']].get('id')!r}"
        for r in gathered(vllm_server, vllm_recordings)
        for e in events(r)
        if kind(e).startswith(INSIDE)
        and e.get("output_index") in added(r)
        and e.get("item_id") != added(r)[e["output_index"]].get("id")
    ]

    assert not wrong, listed(wrong)


@check("responses.items.parts", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_parts(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """A text comes inside a part that is announced before it and closed after it."""
    wrong = []
    told = 0
    for recording in gathered(vllm_server, vllm_recordings):
        open_parts: set[tuple[Any, Any]] = set()
        for event in events(recording):
            place = (event.get("output_index"), event.get("content_index"))
            if kind(event) in BEGINS:
                open_parts.add(place)
            elif kind(event) in CLOSES:
                if place not in open_parts:
                    wrong.append(f"{recording.key}: part {place} is closed twice or never began")
                open_parts.discard(place)
            elif kind(event).startswith(TEXTS):
                told += 1
                if place not in open_parts:
                    wrong.append(f"{recording.key}: {kind(event)} outside of part {place}")
        wrong += [f"{recording.key}: part {place} is never closed" for place in open_parts]
    need(told, "no stream held text")

    assert not wrong, listed(wrong)


@check("responses.items.joined", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_joined(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """The pieces of a text, joined, are the text that its closing event gives."""
    closing = {kind_.replace(".delta", ".done") for kind_ in DELTAS.values()} - {
        "response.function_call_arguments.done"
    }
    told = [
        (r.key, joined(r, e.get("output_index", -1)), str(e.get("text")))
        for r in gathered(vllm_server, vllm_recordings)
        for e in events(r)
        if kind(e) in closing
    ]
    need(told, "no stream closed a text")
    wrong = [
        f"{key}: joined {here!r:.60}, reported {there!r:.60}" for key, here, there in told if here != there
    ]

    assert not wrong, listed(wrong)


@check("responses.items.same-at-the-end", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_same_at_the_end(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """The last event's response holds the items that were streamed, with their text."""
    found = [r for r in gathered(vllm_server, vllm_recordings) if final(r)]
    need(found, "no event ended a stream")
    told = {
        r.key: (
            [(row.get("type"), text(row)) for row in items(final(r))],
            [(row.get("type"), text(row)) for _, row in sorted(finished(r).items())],
        )
        for r in found
    }
    wrong = [
        f"{key}: at the end {end!r:.70}, streamed {streamed!r:.70}"
        for key, (end, streamed) in told.items()
        if end != streamed
    ]

    assert not wrong, listed(wrong)
