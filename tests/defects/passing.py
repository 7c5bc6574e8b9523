"""HTTP/1.1 as a middleman reads it and gives it on: heads, bodies, and no opinion of either."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import StreamReader
    from collections.abc import AsyncIterator

#: Fields of one connection, which are not given on.
HOP = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "expect", "accept-encoding"}
)
LARGEST = 1 << 20


@dataclass(frozen=True)
class Head:
    """The first line and the fields of a request or an answer."""

    first: str
    pairs: tuple[tuple[str, str], ...]
    size: int = 0

    @property
    def method(self) -> str:
        """Of a request."""
        return self.first.split(" ")[0]

    @property
    def target(self) -> str:
        """Of a request."""
        return self.first.split(" ")[1]

    @property
    def status(self) -> str:
        """Of an answer: the number and its reason."""
        return self.first.partition(" ")[2]

    def get(self, name: str) -> str:
        """The value of a field; empty without it."""
        return next((value for key, value in self.pairs if key.lower() == name), "")

    def fields(self, *but: str) -> list[tuple[str, str]]:
        """All fields but these."""
        return [pair for pair in self.pairs if pair[0].lower() not in but]


async def read_head(reader: StreamReader) -> Head | None:
    """The next head; None at the end of the connection."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = raw.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    pairs = tuple((name, value.strip()) for name, _, value in (line.partition(":") for line in lines))
    return Head(first, pairs, len(raw))


async def body_of(head: Head, reader: StreamReader, *, request: bool = False) -> AsyncIterator[bytes]:
    """The pieces of a body as they come; those of chunks without what frames them."""
    if "chunked" in head.get("transfer-encoding").lower():
        while size := int((await reader.readline()).split(b";")[0] or b"0", 16):
            yield (await reader.readexactly(size + 2))[:-2]
        while (await reader.readline()).strip():
            continue
        return
    length = head.get("content-length")
    left = int(length) if length else 0 if request else -1
    while left and (part := await reader.read(min(left, 65536) if left > 0 else 65536)):
        left -= len(part) if left > 0 else 0
        yield part


def later(parts: AsyncIterator[bytes], seconds: float) -> AsyncIterator[bytes]:
    """The same pieces, each so many seconds after it came."""
    came: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def read() -> None:
        try:
            async for part in parts:
                came.put_nowait((monotonic() + seconds, part))
        finally:
            came.put_nowait((0.0, b""))

    reading = asyncio.create_task(read())

    async def given() -> AsyncIterator[bytes]:
        try:
            while (piece := await came.get())[1]:
                await asyncio.sleep(piece[0] - monotonic())
                yield piece[1]
            await reading
        finally:
            reading.cancel()

    return given()


def dressed(asked: Head, path: str, body: bytes, name: str) -> bytes:
    """A request as the server behind gets it: on a connection of its own, with who asked."""
    fields = [pair for pair in asked.pairs if pair[0].lower() not in HOP]
    if name:
        fields = [pair for pair in fields if pair[0].lower() != "x-request-id"] + [("X-Request-Id", name)]
    fields += [("X-Forwarded-For", "192.0.2.7"), ("X-Forwarded-Proto", "https"), ("Connection", "close")]
    if body or asked.method not in ("GET", "HEAD", "OPTIONS"):
        fields.append(("Content-Length", str(len(body))))
    lines = "".join(f"{key}: {value}\r\n" for key, value in fields)
    return f"{asked.method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body
