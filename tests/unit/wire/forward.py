"""A forward proxy on the loopback: tunnels, and requests with a whole URL. Names in `.test` lead here."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass
class Forward:
    """The running proxy, and the first lines and logins of what it was asked."""

    url: str = ""
    refuses: bytes = b""
    lines: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def forward_proxy(refuses: bytes = b"") -> AsyncIterator[Forward]:
    """Serve on a free port.

    Args:
        refuses: what every request is answered with, instead of passing it on.
    """
    proxy = Forward(refuses=refuses)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, _, fields = head.partition("\r\n")
            proxy.lines.append(line)
            proxy.logins += [one for one in fields.split("\r\n") if one.startswith("proxy-authorization:")]
            if proxy.refuses:
                writer.write(proxy.refuses)
                writer.close()
                return
            method, target, _ = line.split(" ")
            parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
            host = "127.0.0.1" if (parts.hostname or "").endswith(".test") else parts.hostname
            there, back = await asyncio.open_connection(host, parts.port)
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                back.write(f"{method} {parts.path} HTTP/1.1\r\n{fields}".encode("latin-1"))
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        await server.wait_closed()
