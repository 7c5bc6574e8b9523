"""Where an HTTP/1.1 response body ends: by length, by chunks, or with the connection.

Own, because a recorder must pay little per read and must say in words what a server framed wrongly.
Source: RFC 9112, sections 6 and 7. Nothing of ours is imported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

_LINE_LIMIT = 65_536
#: Bytes of all trailers together.
TRAILER_LIMIT = 64 * 1024
_HEX = frozenset(b"0123456789abcdefABCDEF")


class FramingError(Exception):
    """The server's bytes are not an HTTP/1.1 body; the text says how."""


class Framing(Protocol):
    """Takes raw bytes and gives the body's.

    `done` is set once the body is complete, `excess` counts the bytes that came after it.
    """

    done: bool
    excess: int

    def feed(self, data: bytes) -> bytes:
        """The part of the body in these bytes. Raises FramingError."""

    def end(self) -> str:
        """What is missing when the connection ends now; empty when nothing is."""


def framing_of(method: str, status: int, headers: Iterable[tuple[str, str]]) -> Framing:
    """How the body of this response is framed. Raises FramingError on a transfer coding we do not know."""
    by_name: dict[str, str] = {}
    for name, value in headers:
        by_name.setdefault(name, value)
    coding = by_name.get("transfer-encoding", "").strip().lower()
    if method == "HEAD" or status in (204, 304) or 100 <= status < 200:
        return ByLength(0)
    if coding == "chunked":
        return ByChunks()
    if coding:
        raise FramingError(f"the transfer coding {coding!r} is unknown")
    length = by_name.get("content-length")
    return UntilClose() if length is None else ByLength(int(length))


class ByLength:
    """`Content-Length: n`."""

    def __init__(self, length: int) -> None:
        """Expect that many bytes."""
        self.length = self.left = length
        self.done = length == 0
        self.excess = 0

    def feed(self, data: bytes) -> bytes:
        """See `Framing`."""
        body = data[: self.left]
        self.left -= len(body)
        self.done = self.left == 0
        self.excess += len(data) - len(body)
        return body

    def end(self) -> str:
        """See `Framing`."""
        return f"the body ended after {self.length - self.left} of {self.length} bytes" if self.left else ""


class UntilClose:
    """Neither length nor chunks: the body ends with the connection."""

    def __init__(self) -> None:
        """Expect anything."""
        self.done = False
        self.excess = 0

    def feed(self, data: bytes) -> bytes:
        """See `Framing`."""
        return data

    def end(self) -> str:
        """See `Framing`."""
        return ""


class ByChunks:
    """`Transfer-Encoding: chunked`; extensions and trailers are read and left out."""

    def __init__(self) -> None:
        """Expect a size line."""
        self.done = False
        self.excess = 0
        self._left = 0
        self._line = b""
        self._state = "size"
        self._trailers = 0

    def feed(self, data: bytes) -> bytes:
        """See `Framing`."""
        if self._state == "size" and not self._line and (whole := _whole_chunk(data)):
            return whole
        body: list[bytes] = []
        at = 0
        while at < len(data):
            if self.done:
                self.excess += len(data) - at
                break
            if self._left:
                piece = data[at : at + self._left]
                body.append(piece)
                at += len(piece)
                self._left -= len(piece)
                continue
            end = data.find(b"\n", at)
            if end < 0:
                self._line += data[at:]
                if len(self._line) > _LINE_LIMIT:
                    raise FramingError(f"a chunk's size line is longer than {_LINE_LIMIT} bytes")
                break
            line = self._line + data[at:end]
            self._line, at = b"", end + 1
            self._next(line.removesuffix(b"\r"))
        return body[0] if len(body) == 1 else b"".join(body)

    def _next(self, line: bytes) -> None:
        if self._state == "size":
            size = line.partition(b";")[0].strip(b" \t")
            if not size or len(size) > 16 or not _HEX.issuperset(size):
                raise FramingError(f"a chunk's size is not a hexadecimal number: {_shown(line)}")
            self._left = int(size, 16)
            self._state = "data" if self._left else "trailer"
        elif self._state == "data":
            if line:
                raise FramingError(f"a chunk goes on after its size: {_shown(line)}")
            self._state = "size"
        elif not line:
            self.done = True
        else:
            self._trailers += len(line)
            if self._trailers > TRAILER_LIMIT:
                raise FramingError(f"the fields after the last chunk are longer than {TRAILER_LIMIT} bytes")

    def end(self) -> str:
        """See `Framing`."""
        return "" if self.done else "the connection ended inside the chunked body"


def _whole_chunk(data: bytes) -> bytes:
    """The payload when the read is exactly one chunk, as it is for nearly every event; else nothing."""
    end = data.find(b"\r\n", 0, 18)
    size = data[:end]
    if end > 0 and _HEX.issuperset(size) and len(data) == end + 4 + int(size, 16) and data.endswith(b"\r\n"):
        return data[end + 2 : -2]
    return b""


def _shown(line: bytes) -> str:
    return repr(line[:40].decode("latin-1"))
