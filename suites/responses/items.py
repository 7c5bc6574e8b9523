"""How this suite reads answers and their events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm import only_if, undecided

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm import Recording, Recordings, Server

Body = dict[str, Any]

#: The first version that streams this interface for all models.
STREAMS_FROM = "0.11.0"
#: The first version that turns tool calls of all models into items.
CALLS_FROM = "0.13.0"
ENDS = ("response.completed", "response.incomplete", "response.failed")
DELTAS = {
    "message": "response.output_text.delta",
    "reasoning": "response.reasoning_text.delta",
    "function_call": "response.function_call_arguments.delta",
}


def applies(server: Server, version: str, what: str) -> None:
    """Go on only if this version is able to do it."""
    only_if(server.at_least(version), f"vLLM {what} from {version} on")


def wholes(recordings: Recordings) -> list[Recording]:
    """Every whole answer of this suite; what goes on in the background is not there yet."""
    return [
        r
        for r in recordings.of("responses.")
        if r.request.path == "/v1/responses" and not r.request.streams and r.status == 200 and not _behind(r)
    ]


def _behind(recording: Recording) -> bool:
    body = recording.request.json
    return isinstance(body, dict) and bool(body.get("background"))


def begun(recordings: Recordings) -> list[Recording]:
    """Every stream of this suite that was answered with 200, whether it came to its end or not."""
    return [r for r in recordings.of("responses.") if r.request.streams and r.status == 200]


def streams(recordings: Recordings) -> list[Recording]:
    """Every stream of this suite that was answered with 200 and for which there was time."""
    return [r for r in begun(recordings) if not r.late]


def events(recording: Recording) -> list[Body]:
    """The events of a stream that are objects; the end mark of other interfaces left out.

    Raises Undecided when time ran out before its end: what had come by then is no answer.
    """
    if recording.late:
        undecided(f"{recording.key} was not read to its end: {recording.error}")
    return [found for event in recording.events if isinstance(found := object_of(event.data), dict)]


def object_of(data: str) -> Any:
    """A text read as JSON; None when it is none."""
    try:
        return json.loads(data)
    except ValueError:
        return None


def kind(event: Body) -> str:
    """What an event says it is."""
    return str(event.get("type"))


def ends(recording: Recording) -> list[Body]:
    """The events that end a response."""
    return [event for event in events(recording) if kind(event) in ENDS]


def final(recording: Recording) -> Body:
    """The response as a stream's last event reports it; empty when it does not."""
    found = ends(recording)
    response = found[-1].get("response") if found else None
    return response if isinstance(response, dict) else {}


def objects(recording: Recording) -> list[Body]:
    """The response, whole; of a stream as often as its events hold it."""
    if not recording.request.streams:
        return [recording.ok]
    return [event["response"] for event in events(recording) if event.get("response")]


def items(response: Body, wanted: str = "") -> list[Body]:
    """The output items of a response, of one type or all."""
    found = response.get("output")
    rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    return [row for row in rows if wanted in ("", row.get("type"))]


def text(item: Body) -> str:
    """What an item says: text, reasoning or arguments."""
    if item.get("type") == "function_call":
        return str(item.get("arguments") or "")
    parts = item.get("content")
    return (
        "".join(str(p.get("text") or "") for p in parts if isinstance(p, dict))
        if isinstance(parts, list)
        else ""
    )


def words(response: Body) -> str:
    """All that a response says, reasoning included."""
    return "".join(map(text, items(response)))


def spoken(response: Body) -> str:
    """The text that a response says to its reader."""
    return "".join(map(text, items(response, "message")))


def added(recording: Recording) -> dict[int, Body]:
    """Output index -> item, as a stream announces them."""
    found = [event for event in events(recording) if kind(event) == "response.output_item.added"]
    return {event.get("output_index", -1): event.get("item") or {} for event in found}


def finished(recording: Recording) -> dict[int, Body]:
    """Output index -> item, as a stream closes them."""
    found = [event for event in events(recording) if kind(event) == "response.output_item.done"]
    return {event.get("output_index", -1): event.get("item") or {} for event in found}


def joined(recording: Recording, index: int) -> str:
    """The pieces of an item's text, joined."""
    found = [e for e in events(recording) if kind(e) in DELTAS.values() and e.get("output_index") == index]
    return "".join(str(event.get("delta") or "") for event in found)


def pieces(recording: Recording) -> Iterator[float]:
    """When each piece arrived, in seconds since the request."""
    for event in recording.events:
        found = object_of(event.data)
        if isinstance(found, dict) and kind(found) in DELTAS.values() and found.get("delta"):
            yield event.at
