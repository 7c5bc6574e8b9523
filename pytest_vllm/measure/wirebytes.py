"""What the bytes of a response say: its head, whether it is whole, its body. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.wire.framing import ByChunks, FramingError, UntilClose

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_BLANK = b"\r\n\r\n"


@dataclass(frozen=True)
class Head:
    """The head of a response.

    Args:
        status: as reported; 0 when the first line is not HTTP.
        fields: header fields, names in lower case.
        ends: bytes that it takes, the empty line included.
        old: whether it is HTTP/1.0, which closes unless it says otherwise.
    """

    status: int
    fields: dict[str, str]
    ends: int
    old: bool = False

    @property
    def chunked(self) -> bool:
        """Whether the body comes in chunks."""
        return "chunked" in self.fields.get("transfer-encoding", "").lower()

    @property
    def length(self) -> int | None:
        """Bytes of the body; None when that is not told."""
        told = self.fields.get("content-length", "")
        return int(told) if told.isdecimal() else None

    @property
    def closes(self) -> bool:
        """Whether the connection ends with this response."""
        words = [word.strip() for word in self.fields.get("connection", "").lower().split(",")]
        return "close" in words or (self.old and "keep-alive" not in words)


def head_of(pieces: Sequence[bytes]) -> Head | None:
    """The head, once it is there; interim ones (1xx) are passed over."""
    data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    begin = 0
    while (end := data.find(_BLANK, begin)) >= 0:
        lines = data[begin:end].decode("latin-1").split("\r\n")
        words = lines[0].split(" ", 2)
        number = words[1] if len(words) > 1 and words[0].startswith("HTTP/1.") else ""
        status = int(number) if number.isdecimal() else 0
        begin = end + len(_BLANK)
        if status == 0 or status >= 200:
            pairs = (line.partition(":") for line in lines[1:])
            fields = {name.strip().lower(): value.strip() for name, _, value in pairs}
            return Head(status, fields, begin, old=words[0] == "HTTP/1.0")
    return None


def complete(head: Head, pieces: Sequence[bytes]) -> bool:
    """Whether the body is all there. Reads every chunk: what looks like the last one may be content.

    Raises FramingError when these are not chunks.
    """
    if not head.chunked:
        return True
    chunks = ByChunks()
    chunks.feed(b"".join(pieces)[head.ends :])
    return chunks.done


def body_pieces(head: Head, pieces: Sequence[bytes], times: Sequence[float]) -> Iterator[tuple[bytes, float]]:
    """The body without chunk framing: what each read brought of it, and when; nothing after a bad chunk.

    A chunk that is cut by the end of a read is given in parts, each with the time of its read.
    """
    skip, framing = head.ends, ByChunks() if head.chunked else UntilClose()
    for piece, at in zip(pieces, times, strict=True):
        if skip >= len(piece):
            skip -= len(piece)
            continue
        try:
            body = framing.feed(piece[skip:])
        except FramingError:
            return
        skip = 0
        if body:
            yield body, at
