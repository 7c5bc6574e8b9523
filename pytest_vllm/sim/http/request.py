"""One HTTP request, and the reading of it from a byte stream."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

MAX_LINE = 65536
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_REQUEST_LINE = re.compile(rb"([A-Z][A-Z-]*) ([^ ]+) HTTP/1\.([01])")


class BadRequest(ValueError):  # noqa: N818 - the name of the status
    """The bytes are no HTTP request."""


@dataclass(frozen=True)
class Request:
    """A complete request.

    `path` is decoded and without the query; `headers` have lower-case names, the last of a name wins.
    """

    method: str
    target: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    keep_alive: bool


class RequestReader:
    """Cuts a byte stream into requests; `feed` bytes, then take `next()` until it is None."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self.buffer = bytearray()
        self._head: tuple[str, str, dict[str, str], bool] | None = None
        self._length = 0
        self._chunks: list[bytes] | None = None

    def feed(self, data: bytes) -> None:
        """Append what came from the socket."""
        self.buffer += data

    def expects_continue(self) -> bool:
        """Whether the client waits for `100 Continue` before it sends the body."""
        return self._head is not None and "100-continue" in self._head[2].get("expect", "").lower()

    def next(self) -> Request | None:
        """The next complete request, None when bytes are missing. Raises BadRequest."""
        if self._head is None and not self._read_head():
            return None
        body = self._read_chunks() if self._chunks is not None else self._read_length()
        if body is None:
            return None
        assert self._head is not None  # noqa: S101 - _read_head set it
        method, target, headers, keep_alive = self._head
        self._head = None
        path, _, query = _origin(target).partition("?")
        return Request(method, target, unquote(path), query, headers, body, keep_alive)

    def _read_head(self) -> bool:
        while self.buffer[:2] == b"\r\n":
            del self.buffer[:2]
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            self._early_refusal()
            return False
        lines = bytes(self.buffer[:end]).split(b"\r\n")
        del self.buffer[: end + 4]
        found = _REQUEST_LINE.fullmatch(lines[0])
        if not found or len(found[2]) > MAX_LINE:
            raise BadRequest("request line")
        headers, keep_alive = _headers(lines[1:]), found[3] == b"1"
        connection = headers.get("connection", "").lower()
        keep_alive = "close" not in connection if keep_alive else "keep-alive" in connection
        self._length, self._chunks = _framing(headers)
        self._head = (found[1].decode(), found[2].decode("latin-1"), headers, keep_alive)
        return True

    def _early_refusal(self) -> None:
        line = bytes(self.buffer[: MAX_LINE + 64]).split(b"\r\n", 1)[0]
        if len(line) > MAX_LINE or (
            self.buffer and not re.match(rb"[A-Z]{1,20}(-|$| |[A-Z])", self.buffer[:32])
        ):
            raise BadRequest("request line")

    def _read_length(self) -> bytes | None:
        if len(self.buffer) < self._length:
            return None
        body = bytes(self.buffer[: self._length])
        del self.buffer[: self._length]
        return body

    def _read_chunks(self) -> bytes | None:
        assert self._chunks is not None  # noqa: S101 - checked by next()
        while True:
            end = self.buffer.find(b"\r\n")
            if end < 0:
                return None
            size_text = bytes(self.buffer[:end]).split(b";")[0].strip()
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,16}", size_text):
                raise BadRequest("chunk size")
            size = int(size_text, 16)
            if len(self.buffer) < end + 2 + size + 2:
                return None
            self._chunks.append(bytes(self.buffer[end + 2 : end + 2 + size]))
            if self.buffer[end + 2 + size : end + 4 + size] != b"\r\n":
                raise BadRequest("chunk end")
            del self.buffer[: end + 4 + size]
            if size == 0:
                body = b"".join(self._chunks)
                self._chunks = None
                return body


def _headers(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _TOKEN.fullmatch(name):
            raise BadRequest("header")
        key = name.decode().lower()
        if key == "content-length" and key in headers:
            raise BadRequest("two lengths")
        headers[key] = value.strip().decode("latin-1")
    return headers


def _framing(headers: dict[str, str]) -> tuple[int, list[bytes] | None]:
    length = headers.get("content-length")
    if "transfer-encoding" in headers:
        if length is not None or headers["transfer-encoding"].lower() != "chunked":
            raise BadRequest("length and transfer encoding")
        return 0, []
    if length is None:
        return 0, None
    if not length.isdigit():
        raise BadRequest("length")
    return int(length), None


def _origin(target: str) -> str:
    if target.startswith(("http://", "https://")):
        return "/" + target.split("://", 1)[1].partition("/")[2]
    return target
