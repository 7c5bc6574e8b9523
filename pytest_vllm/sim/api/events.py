"""Server-sent events as data, and the writing of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any

from pytest_vllm.sim.errors import encode

DONE = "[DONE]"


@dataclass
class Event:
    """One event: a JSON value or raw text, and when it is due.

    It is sent once choice `choice` has `at` tokens, and not before the events in front of it. `when` is the
    second at which a recorded event came.
    """

    data: Any
    name: str = ""
    choice: int = 0
    at: int = 0
    when: float = 0.0

    @property
    def is_done(self) -> bool:
        """Whether this is the end mark."""
        return bool(self.data == DONE)

    @property
    def delta(self) -> dict[str, Any]:
        """The first choice's delta; empty when there is none. Changing it changes the event."""
        choices = self.data.get("choices") if isinstance(self.data, dict) else None
        return choices[0].get("delta", {}) if choices else {}

    @property
    def finish(self) -> str | None:
        """The first choice's finish reason."""
        choices = self.data.get("choices") if isinstance(self.data, dict) else None
        return choices[0].get("finish_reason") if choices else None


def wire(event: Event) -> bytes:
    """The bytes of an event."""
    text = event.data.encode() if isinstance(event.data, str) else encode(event.data)
    head = f"event: {event.name}\n".encode() if event.name else b""
    return b"%bdata: %b\n\n" % (head, text)


def quoted(text: str) -> bytes:
    """A text as JSON."""
    try:
        return encode_basestring(text).encode()
    except UnicodeEncodeError:
        return json.dumps(text).encode()


def template(data: Any, mark: str) -> tuple[bytes, bytes]:
    """What comes before and after a marked text in the bytes of an event."""
    before, _, after = wire(Event(data)).partition(quoted(mark))
    return before, after


def read(body: bytes) -> list[tuple[Event, int]]:
    """Events of a recorded stream with the position of each one's end; what is not JSON stays text."""
    found: list[tuple[Event, int]] = []
    start = 0
    while (end := body.find(b"\n\n", start)) >= 0:
        name, data = "", []
        for line in body[start:end].decode(errors="replace").split("\n"):
            key, _, value = line.partition(": ")
            if key == "event":
                name = value
            elif key == "data":
                data.append(value)
        start = end + 2
        text = "\n".join(data)
        try:
            parsed = json.loads(text) if text != DONE else text
        except ValueError:
            parsed = text
        found.append((Event(parsed, name), start))
    return found
