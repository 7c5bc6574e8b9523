"""A small HTTP server that says exactly what a test tells it to, in the test's own event loop."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable

PATIENCE = 10.0


@dataclass
class Call:
    """One request as it arrived, and the connection it came on."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes
    reader: asyncio.StreamReader = field(repr=False)
    writer: asyncio.StreamWriter = field(repr=False)

    @property
    def path(self) -> str:
        return self.line.split(" ")[1]

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    async def write(self, *pieces: bytes) -> None:
        """Write pieces, each of which the client gets to read by itself."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            for _ in range(6):
                await asyncio.sleep(0)

    async def answer(self, body: Any, status: int = 200, **headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        kind = "application/json" if not isinstance(body, bytes) else "text/plain; charset=utf-8"
        head = [f"HTTP/1.1 {status} Whatever", f"content-length: {len(content)}"]
        head += [
            f"{name.replace('_', '-')}: {value}" for name, value in ({"content_type": kind} | headers).items()
        ]
        await self.write("\r\n".join([*head, "", ""]).encode() + content)

    async def stream(self, *pieces: bytes, end: bool = True) -> None:
        """Answer with a chunked event stream, one HTTP chunk per piece."""
        await self.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
            *(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces),
        )
        if end:
            await self.write(b"0\r\n\r\n")

    async def closed_by_client(self) -> bool:
        """Wait until the client closes; fails when it does not."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self.reader.read() == b""
            except ConnectionResetError:
                return True


@dataclass
class Fake:
    """The running server."""

    url: str
    calls: list[Call] = field(default_factory=list)


@asynccontextmanager
async def fake_server(
    handler: Callable[[Call], Awaitable[None]], *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Fake]:
    """Serve on a free loopback port; every connection carries one request."""
    fake = Fake("")
    failures: list[BaseException] = []
    tasks: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            call = await _call(reader, writer)
            fake.calls.append(call)
            await handler(call)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away, as some tests want
        except Exception as error:  # noqa: BLE001 - handed to the test below
            failures.append(error)
        finally:
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        task = asyncio.create_task(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    fake.url = f"http{'s' if tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield fake
    finally:
        server.close()
        if tasks:  # the clients are gone, so every handler comes to its end
            _, hanging = await asyncio.wait(tasks, timeout=PATIENCE)
            for task in hanging:
                task.cancel()
            failures += [AssertionError("a handler hangs: a client left its connection open")] * len(hanging)
        await server.wait_closed()
        for writer in writers:  # what a client never read keeps a connection open, beyond this loop
            writer.transport.abort()
        await asyncio.sleep(0)
    if failures:
        raise failures[0]


async def _call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Call:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.rstrip("\r\n").split("\r\n")
    headers = [(name, value.strip()) for name, _, value in (one.partition(":") for one in rest)]
    call = Call(line, headers, b"", reader, writer)
    call.body = await reader.readexactly(int(call.header("content-length") or 0))
    return call
