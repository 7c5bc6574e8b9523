"""The simulated proxy: a port of its own in front of the server, which passes bytes on in both directions."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_vllm.sim.defects.hooks import Hooks

PIECE = 1 << 16


class Relay:
    """Passes connections on to a port of this machine.

    Args:
        port: the server's.
        hooks: what a defect does to the bytes.
    """

    def __init__(self, port: int, hooks: Hooks) -> None:
        """Nothing listens yet."""
        self._port, self._hooks = port, hooks
        self._listening: asyncio.Server

    async def up(self, host: str, port: int) -> None:
        """Listen. Raises OSError when the port is taken."""
        self._listening = await asyncio.start_server(self._serve, host, port, backlog=2048)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listening.sockets[0].getsockname()[1])

    def down(self) -> None:
        """Listen no more; the server cuts the connections that are open."""
        self._listening.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            behind, before = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.close()
            return
        ways = [
            asyncio.ensure_future(self._forward(reader, before)),
            asyncio.ensure_future(self._back(behind, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            for one in (before, writer):
                one.close()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await _piece(reader):
            held = self._hooks.run("forward", 0.0, data)
            if held:
                await asyncio.sleep(held)
            writer.write(data)

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held = b""
        while data := await _piece(reader):
            held += data
            if (passed := self._hooks.run("back", held)) is not None:
                writer.write(passed)
                held = b""
        writer.write(held)


async def _piece(reader: asyncio.StreamReader) -> bytes:
    with contextlib.suppress(ConnectionError):
        return await reader.read(PIECE)
    return b""
