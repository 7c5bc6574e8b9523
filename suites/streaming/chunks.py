"""How this suite reads the chunks of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_vllm import Event, Recording, Recordings


def streams(recordings: Recordings) -> list[Recording]:
    """Every stream of this suite that was answered with 200."""
    return [r for r in recordings.of("streaming.") if r.request.streams and r.status == 200]


def readable(recordings: Recordings) -> list[Recording]:
    """Those streams of which every event is JSON; the framing checks judge the others."""
    return [r for r in streams(recordings) if not any(map(unreadable, r.events))]


def unreadable(event: Event) -> str:
    """Why an event is not JSON; empty for JSON and for the end mark."""
    if event.is_done:
        return ""
    try:
        return "" if isinstance(event.json, dict) else f"no object: {event.data[:60]!r}"
    except ValueError as error:
        return f"{error}: {event.data[:60]!r}"


def chunks(stream: Recording) -> list[dict[str, Any]]:
    """The chunks of a stream: its JSON objects that are not errors."""
    return [delta for delta in stream.deltas if isinstance(delta, dict) and "error" not in delta]


def choices(stream: Recording, index: int = 0) -> list[dict[str, Any]]:
    """What a stream says of one choice, in order."""
    return [choice for chunk in chunks(stream) for choice in chunk["choices"] if choice["index"] == index]


def indices(stream: Recording) -> list[int]:
    """The choices that a stream speaks of."""
    return sorted({choice["index"] for chunk in chunks(stream) for choice in chunk["choices"]})


def piece(choice: dict[str, Any]) -> str:
    """The text of a chunk's choice: of a completion, or of a chat answer with its reasoning."""
    if "delta" not in choice:
        return str(choice.get("text") or "")
    delta = choice["delta"]
    thought = delta.get("reasoning") or delta.get("reasoning_content") or ""
    return f"{thought}{delta.get('content') or ''}"


def joined(stream: Recording, index: int = 0) -> str:
    """The whole text of a choice."""
    return "".join(map(piece, choices(stream, index)))


def finishes(stream: Recording, index: int = 0) -> list[str]:
    """The finish reasons that a stream gives for a choice."""
    return [choice["finish_reason"] for choice in choices(stream, index) if choice.get("finish_reason")]


def usages(stream: Recording) -> list[dict[str, Any]]:
    """The usage objects of a stream, in order."""
    return [chunk["usage"] for chunk in chunks(stream) if chunk.get("usage")]


def arrivals(stream: Recording) -> list[float]:
    """When each piece of text arrived, in seconds since the request."""
    spoken = [event for event in stream.events if not event.is_done and "error" not in event.json]
    return [event.at for event in spoken if any(piece(choice) for choice in event.json["choices"])]
