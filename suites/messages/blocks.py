"""How this suite reads answers and their events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm import only_if

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm import Recording, Recordings, Server

Body = dict[str, Any]

#: Block type -> what its deltas may be.
DELTAS = {
    "text": ("text_delta", "citations_delta"),
    "thinking": ("thinking_delta", "signature_delta"),
    "redacted_thinking": (),
    "tool_use": ("input_json_delta",),
}
#: First version whose messages name the stop sequence that ended them.
STOPS_FROM = "0.29.0"
REASONS = ("end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal")


def names_stops(server: Server) -> None:
    """Raises NotRun for a vLLM that is known to call a stop sequence the end of the turn."""
    only_if(server.at_least(STOPS_FROM), f"before {STOPS_FROM} vLLM names no stop sequence in messages")


def wholes(recordings: Recordings) -> list[Recording]:
    """Every whole answer of this suite."""
    return [
        r
        for r in recordings.of("messages.")
        if r.request.path == "/v1/messages" and not r.request.streams and r.status == 200
    ]


def streams(recordings: Recordings) -> list[Recording]:
    """Every stream of this suite that was answered with 200."""
    return [r for r in recordings.of("messages.") if r.request.streams and r.status == 200]


def object_of(text: str) -> Any:
    """A text read as JSON; None when it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def events(recording: Recording) -> list[Body]:
    """The events of a stream that are objects."""
    return [found for event in recording.events if isinstance(found := object_of(event.data), dict)]


def kind(event: Body) -> str:
    """What an event says it is."""
    return str(event.get("type"))


def of(recording: Recording, wanted: str) -> list[Body]:
    """The events of one type."""
    return [event for event in events(recording) if kind(event) == wanted]


def delta(event: Body) -> Body:
    """What an event changes; empty when it does not."""
    found = event.get("delta")
    return found if isinstance(found, dict) else {}


def blocks(body: Body, wanted: str = "") -> list[Body]:
    """The content blocks of an answer, of one type or all."""
    found = body.get("content")
    rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    return [row for row in rows if wanted in ("", row.get("type"))]


def words(body: Body) -> str:
    """All that an answer says, reasoning included."""
    return "".join(str(b.get("text") or b.get("thinking") or "") for b in blocks(body))


def spoken(body: Body) -> str:
    """The text that an answer says to its reader."""
    return "".join(str(b.get("text") or "") for b in blocks(body, "text"))


def streamed(recording: Recording) -> str:
    """All that a stream says, reasoning included."""
    found = map(delta, of(recording, "content_block_delta"))
    return "".join(str(one.get("text") or one.get("thinking") or "") for one in found)


def arguments(recording: Recording) -> str:
    """The pieces of a call's input, joined."""
    found = map(delta, of(recording, "content_block_delta"))
    return "".join(str(one.get("partial_json") or "") for one in found)


def last_word(recording: Recording) -> Body:
    """The event that says how a streamed answer ended; empty when there is none."""
    found = of(recording, "message_delta")
    return found[-1] if found else {}


def first_word(recording: Recording) -> Body:
    """The message as a stream announces it; empty when it does not."""
    found = of(recording, "message_start")
    message = found[0].get("message") if found else None
    return message if isinstance(message, dict) else {}


def prompt_tokens(usage: Any) -> int:
    """The tokens of the prompt, those that came from or went to the cache included."""
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(usage.get(name) or 0 for name in names) if isinstance(usage, dict) else 0


def pieces(recording: Recording) -> Iterator[float]:
    """When each piece of text arrived, in seconds since the request."""
    for event in recording.events:
        found = object_of(event.data)
        if isinstance(found, dict) and kind(found) == "content_block_delta":
            yield event.at
