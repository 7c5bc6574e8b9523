"""A strict reader of server-sent events that keeps the bytes.

Own and small on purpose: SDKs skip what they do not understand, and a verifier must see it.
Source: WHATWG HTML, section 9.2.6 "Interpreting an event stream". Nothing of ours is imported here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

FIELDS = frozenset({"event", "data", "id", "retry"})
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Event:
    """One event of a stream.

    Args:
        at: seconds from the moment the request was sent to the arrival of the event's last byte.
        data: the data lines, joined by newlines.
        name: the `event:` field, empty when absent.
        raw: the event's lines as they came.
        faults: what no stream of an OpenAI-compatible server may hold, in words; empty on a clean event.
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
        return strict_json(self.data)


def strict_json(text: str) -> Any:
    """What a client in another language would read: no NaN, no Infinity. Raises ValueError."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("nested too deeply to be read") from error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


class SSEReader:
    """Feeds on (time, bytes) chunks and gives events; what is left over is in `pending`.

    Lines end in LF, CRLF or CR, and an event's bytes give the same event however they are cut into chunks.
    """

    def __init__(self) -> None:
        """Start an empty stream."""
        self._tail: list[bytes] = []  # the open line, in pieces: joining them at every chunk is quadratic
        self._lines: list[bytes] = []
        self._after_cr = False
        self._begun = False
        self._faults: list[str] = []

    @property
    def pending(self) -> bytes:
        """Bytes and lines that no blank line has closed yet."""
        return b"".join(line + b"\n" for line in self._lines) + b"".join(self._tail)

    def feed(self, at: float, chunk: bytes) -> list[Event]:
        """The events that this chunk completes."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if b"\n" not in chunk and b"\r" not in chunk:
            if chunk:
                self._tail.append(chunk)
            return []
        events = []
        lines = (b"".join(self._tail) + chunk).splitlines(keepends=True)
        self._tail = [] if lines[-1].endswith((b"\n", b"\r")) else [lines.pop()]
        self._after_cr = chunk.endswith(b"\r")
        for line in lines:
            if content := self._begin(line.rstrip(b"\r\n")):
                self._lines.append(content)
            elif self._lines:
                events.append(self._close(at))
        return events

    def _begin(self, line: bytes) -> bytes:
        if not self._begun and line.startswith(BOM):
            self._faults.append("a byte order mark opens the stream")
            line = line.removeprefix(BOM)
        self._begun = True
        return line

    def _close(self, at: float) -> Event:
        texts = [self._decode(line) for line in self._lines]
        data: list[str] = []
        name = ""
        for line in texts:
            if line.startswith(":"):
                continue
            field, colon, value = line.partition(":")
            value = value.removeprefix(" ")
            if field not in FIELDS:
                self._faults.append(f"unknown field {field[:40]!r}")
            elif not colon:
                self._faults.append(f"field {field!r} without a colon")
            elif field == "retry" and not (value.isascii() and value.isdigit()):
                self._faults.append(f"retry is not a number: {value[:40]!r}")
            if field == "data":
                data.append(value)
            elif field == "event":
                name = value
        if not data and not all(line.startswith(":") for line in texts):
            self._faults.append("an event without data")
        event = Event(at, "\n".join(data), name, "\n".join(texts), tuple(self._faults))
        self._lines, self._faults = [], []
        return event

    def _decode(self, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            self._faults.append(f"not UTF-8: {error.reason} at byte {error.start}")
            return line.decode(errors="replace")


def is_comment(event: Event) -> bool:
    """Whether the event holds only comment lines, as keep-alives do."""
    return all(line.startswith(":") for line in event.raw.split("\n"))


def read_stream(chunks: list[tuple[float, bytes]]) -> tuple[list[Event], bytes]:
    """All events of a recorded stream without its comments, and the bytes no blank line closed."""
    reader = SSEReader()
    events = [event for at, chunk in chunks for event in reader.feed(at, chunk)]
    return [event for event in events if not is_comment(event)], reader.pending
