"""A strict reader of server-sent events that keeps the bytes.

Own and small on purpose: SDKs skip what they do not understand, and a verifier must see it.
Source: WHATWG HTML, section 9.2.6 "Interpreting an event stream". Nothing of ours is imported here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

FIELDS = frozenset({"event", "data", "id", "retry"})


@dataclass(frozen=True)
class Event:
    """One event of a stream.

    Args:
        at: seconds from the moment the request was sent to the arrival of the event's last byte.
        data: the data lines, joined by newlines.
        name: the `event:` field, empty when absent.
        raw: the event's lines as they came.
        faults: what the stream format does not allow, in words; empty on a clean event.
    """

    at: float
    data: str
    name: str = ""
    raw: str = ""
    faults: tuple[str, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether this is the `[DONE]` mark that ends an OpenAI stream."""
        return self.data == "[DONE]"

    @property
    def json(self) -> Any:
        """The data as JSON; NaN and Infinity are refused. Raises ValueError when it is not JSON."""
        return json.loads(self.data, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


class SSEReader:
    """Feeds on (time, bytes) chunks and gives events; what is left over is in `pending`."""

    def __init__(self) -> None:
        """Start an empty stream."""
        self._buffer = b""
        self._lines: list[str] = []
        self._faults: list[str] = []

    @property
    def pending(self) -> bytes:
        """Bytes and lines that no blank line has closed yet."""
        return "\n".join(self._lines).encode() + (b"\n" if self._lines else b"") + self._buffer

    def feed(self, at: float, chunk: bytes) -> list[Event]:
        """The events that this chunk completes."""
        events = []
        *lines, self._buffer = (self._buffer + chunk).replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            if line:
                self._line(line)
            elif self._lines:
                events.append(self._close(at))
        return events

    def _line(self, line: bytes) -> None:
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            self._faults.append(f"not UTF-8: {error.reason} at byte {error.start}")
            text = line.decode(errors="replace")
        self._lines.append(text)

    def _close(self, at: float) -> Event:
        data: list[str] = []
        name = ""
        for line in self._lines:
            if line.startswith(":"):
                continue
            field, colon, value = line.partition(":")
            if field not in FIELDS:
                self._faults.append(f"unknown field {field[:40]!r}")
            elif not colon:
                self._faults.append(f"field {field!r} without a colon")
            value = value.removeprefix(" ")
            if field == "data":
                data.append(value)
            elif field == "event":
                name = value
        event = Event(at, "\n".join(data), name, "\n".join(self._lines), tuple(self._faults))
        self._lines, self._faults = [], []
        return event


def is_comment(event: Event) -> bool:
    """Whether the event holds only comment lines, as keep-alives do."""
    return all(line.startswith(":") for line in event.raw.split("\n"))


def read_stream(chunks: list[tuple[float, bytes]]) -> tuple[list[Event], bytes]:
    """All events of a recorded stream without its comments, and the bytes no blank line closed."""
    reader = SSEReader()
    events = [event for at, chunk in chunks for event in reader.feed(at, chunk)]
    return [event for event in events if not is_comment(event)], reader.pending
