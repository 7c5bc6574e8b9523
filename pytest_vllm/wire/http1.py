"""An httpx transport that stamps every read of the socket at the moment it happens.

httpx's own transport pays about 100 µs of CPU per read (anyio, httpcore and h11 one above the other;
measured by tests/bench/client_events.py). This one lets asyncio call it with the bytes. Response heads
are read by h11. Every exchange has its own connection: a server that closes idle connections never races
with a request, so none is ever retried or lost.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import h11
import httpx

from pytest_vllm.wire.allowance import Allowance
from pytest_vllm.wire.dial import INCOMPLETE, connect, refused, unagreed, unreached
from pytest_vllm.wire.failure import Failure, TransportError
from pytest_vllm.wire.framing import Framing, FramingError, framing_of
from pytest_vllm.wire.trust import refusal

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable

    from pytest_vllm.wire.policy import Route

HEAD_LIMIT = 256 * 1024
#: Provisional responses (100, 103) before the one that counts.
HINTS = 10_000
#: Seconds until a connection must stand, where nobody says.
PATIENCE = 15.0


@dataclass
class Pulse:
    """When the latest piece of any event stream came.

    Args:
        at: by `time.perf_counter`; 0 before the first.
    """

    at: float = 0.0


class Arrivals(httpx.AsyncByteStream):
    """A response body while it arrives.

    Args:
        pieces: (time.perf_counter() of the read, body bytes), as read from the socket.
    """

    def __init__(self, connection: _Connection) -> None:
        """Made by the transport, once the response head is there."""
        self._connection = connection
        self.pieces = connection.pieces

    @property
    def sent_at(self) -> float:
        """time.perf_counter() when the request was handed to the socket."""
        return self._connection.sent_at

    @property
    def head_at(self) -> float:
        """time.perf_counter() of the read that completed the response head."""
        return self._connection.head_at

    @property
    def last_at(self) -> float:
        """time.perf_counter() of the latest read."""
        return self._connection.read_at

    async def finished(self, stop: Callable[[float, bytes], bool] | None = None) -> bool:
        """Wait for the end of the body; whether `stop` ended it first, by returning True for a piece.

        A body that is complete by then was not stopped. Raises TransportError when the body does not end
        cleanly.
        """
        connection = self._connection
        if stop is not None:
            connection.stop_at(stop)
        await asyncio.shield(connection.over)
        return connection.stopped

    def stop(self) -> bool:
        """Close the connection now; whether anything of the body was still to come."""
        return self._connection.stop()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The pieces, as httpx hands them on."""
        given = 0
        while not self._connection.over.done() or given < len(self.pieces):
            if given == len(self.pieces):
                news = self._connection.news = asyncio.get_running_loop().create_future()
                await news
                continue
            given += 1
            yield self.pieces[given - 1][1]
        self._connection.over.result()

    async def aclose(self) -> None:
        """Close the connection, wherever the body is, and wait until it is closed."""
        self._connection.close()
        try:
            async with asyncio.timeout(1):
                await asyncio.shield(self._connection.lost)
        except TimeoutError:
            self._connection.abort()


class _Connection(asyncio.Protocol):
    """One request and its response on one connection."""

    def __init__(self, method: str, gap: float | None, route: Route, allowance: Allowance) -> None:
        self.pulse: Pulse | None = None
        loop = asyncio.get_running_loop()
        self.head: asyncio.Future[h11.Response] = loop.create_future()
        self.over: asyncio.Future[None] = loop.create_future()
        self.lost: asyncio.Future[None] = loop.create_future()
        self.news: asyncio.Future[None] | None = None
        for future in (self.head, self.over):  # whoever gives up early must not leave a warning behind
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.pieces: list[tuple[float, bytes]] = []
        self.stopped = False
        self.sent_at = self.head_at = self.read_at = 0.0
        self._stop: Callable[[float, bytes], bool] | None = None
        self._method, self._route = method, route
        self._gap = gap
        self._watch: asyncio.TimerHandle | None = None
        self._size = self._hints = 0
        self._allowance = allowance
        self._framing: Framing | None = None
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_LIMIT)
        self._transport: asyncio.Transport | None = None

    def send(self, target: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """Hand the whole request to the socket. Raises h11.LocalProtocolError when it is not HTTP/1.1."""
        request = h11.Request(method=self._method, target=target, headers=headers)
        head = self._h11.send(request) or b""
        assert self._transport is not None  # noqa: S101 - create_connection has returned
        self.sent_at = time.perf_counter()
        self._transport.write(head + body)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        now = self.read_at = time.perf_counter()
        try:
            if self._framing is None:
                data = self._read_head(now, data)
                if self._framing is None:
                    return
            self._read_body(now, data)
        except h11.RemoteProtocolError as error:
            self._fail(Failure.PROTOCOL, f"the response head is not HTTP/1.1: {error}")
        except FramingError as error:
            self._fail(Failure.PROTOCOL, str(error))

    def _read_head(self, now: float, data: bytes) -> bytes:
        self._h11.receive_data(data)
        event = self._h11.next_event()
        while isinstance(event, h11.InformationalResponse):
            self._hints += 1
            if self._hints > HINTS:
                raise FramingError(f"no response came after {HINTS} provisional ones")
            event = self._h11.next_event()
        if not isinstance(event, h11.Response):
            return b""
        self.head_at = now
        rest = self._h11.trailing_data[0]
        fields = _text(event.headers.raw_items())
        self._framing = framing_of(self._method, event.status_code, fields)
        if not dict(fields).get("content-type", "").startswith("text/event-stream"):
            self.pulse = None
        if not self.head.done():
            self.head.set_result(event)
        if self._gap is not None:
            self._watch = asyncio.get_running_loop().call_later(self._gap, self._check_gap)
        return rest

    def _read_body(self, now: float, data: bytes) -> None:
        framing = self._framing
        assert framing is not None  # noqa: S101
        piece = framing.feed(data)
        if piece:
            self.pieces.append((now, piece))
            self._size += len(piece)
            if self.pulse is not None:
                self.pulse.at = now
            if self.news is not None and not self.news.done():
                self.news.set_result(None)
            if self._stop is not None and self._stop(now, piece) and self.stop():
                return
        if too_long := self._allowance.take(self._size, len(piece)):
            self._shorten()
            self._size = 0  # what one such answer took is not given back: the next ones are cut sooner
            self._fail(Failure.PROTOCOL, too_long)
        elif framing.excess:
            self._fail(Failure.PROTOCOL, f"{framing.excess} bytes came after the end of the body")
        elif framing.done:
            self._end()

    def _shorten(self) -> None:
        """Keep the beginning alone of a body that is too long: it shows what came."""
        kept = 0
        for number, (_, piece) in enumerate(self.pieces):
            kept += len(piece)
            if kept > self._allowance.least:
                del self.pieces[number + 1 :]
                break

    def stop_at(self, stop: Callable[[float, bytes], bool]) -> None:
        """Stop at the first piece, already here or still to come, for which this returns True."""
        self._stop = stop
        if any(stop(at, piece) for at, piece in self.pieces):
            self.stop()

    def stop(self) -> bool:
        """Close the connection on purpose; False when there was nothing left to stop."""
        if self.over.done() or (self._framing is not None and self._framing.done):
            return False
        self.stopped = True
        self._end()
        return True

    def _check_gap(self) -> None:
        assert self._gap is not None  # noqa: S101
        silent = time.perf_counter() - self.read_at
        if silent >= self._gap:
            self._fail(Failure.TIMEOUT_SILENCE, f"no byte came for {self._gap:g} s")
        else:
            self._watch = asyncio.get_running_loop().call_later(self._gap - silent, self._check_gap)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(None)
        if isinstance(exc, ssl.SSLError) and self._framing is None:
            # in TLS 1.3 a server refuses a client's certificate only after the handshake
            self._fail(Failure.TLS, str(refusal(exc, self._route.where)))
        elif self._framing is None and exc is not None:
            hint = "" if self.read_at else self._route.hint
            self._fail(Failure.RESET, f"the connection broke before a response came: {exc}{hint}")
        elif self._framing is None:
            self._fail(Failure.TRUNCATED, INCOMPLETE + ("" if self.read_at else self._route.hint))
        elif exc is not None and not self._framing.done:
            self._fail(Failure.RESET, f"the connection broke: {exc}")
        elif missing := self._framing.end():
            self._fail(Failure.TRUNCATED, missing)
        else:
            self._end()

    def _fail(self, failure: Failure, words: str) -> None:
        error = TransportError(failure, words)
        for future in (self.head, self.over):
            if not future.done():
                future.set_exception(error)
        self.close()

    def _end(self) -> None:
        if not self.over.done():
            self.over.set_result(None)
        self.close()

    def close(self) -> None:
        """Close the connection, now."""
        if self._watch is not None:
            self._watch.cancel()
        if self.news is not None and not self.news.done():
            self.news.set_result(None)
        self._allowance.give_back(self._size)
        self._size = 0
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Drop the connection with whatever was not yet sent."""
        self.close()
        if self._transport is not None:
            self._transport.abort()


class Http1Transport(httpx.AsyncBaseTransport):
    """HTTP/1.1 along one route; the response's stream is an `Arrivals`, also found as extension `arrivals`.

    Of httpx's timeouts it keeps `connect` (seconds until the connection stands, tunnel and TLS included) and
    `read` (seconds without a byte once the response head is there). How long the head may take is the
    caller's to say: a server that generates before it answers is not silent. The extension `target` replaces
    the request line's target, byte for byte.
    """

    def __init__(self, route: Route, allowance: Allowance | None = None) -> None:
        """Whatever the URL of a request says, it goes along this route; answers share the allowance."""
        self._route, self._allowance = route, allowance or Allowance()
        self.pulse = Pulse()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request and wait for the response head. Raises TransportError."""
        limits: dict[str, float | None] = request.extensions.get("timeout", {})
        target: bytes = request.extensions.get("target", request.url.raw_path)
        body = await request.aread()
        connection = await self._connect(request, limits)
        try:
            connection.send(target, request.headers.raw, body)
            head = await connection.head
        except h11.LocalProtocolError as error:
            connection.abort()
            words = f"not sent: the request is not HTTP/1.1: {error}"
            raise TransportError(Failure.NOT_SENT, words) from error
        except BaseException:
            connection.abort()
            raise
        arrivals = Arrivals(connection)
        return httpx.Response(
            head.status_code,
            headers=list(head.headers),
            stream=arrivals,
            extensions={
                "http_version": b"HTTP/" + head.http_version,
                "reason_phrase": head.reason,
                "arrivals": arrivals,
            },
        )

    async def _connect(self, request: httpx.Request, limits: dict[str, float | None]) -> _Connection:
        route, patience = self._route, limits.get("connect") or PATIENCE
        connection, fault = _Connection(request.method, limits.get("read"), route, self._allowance), unreached
        connection.pulse = self.pulse
        try:
            async with asyncio.timeout(patience):
                sock = await asyncio.to_thread(connect, route, patience) if route.tls else None
                fault = unagreed if sock else unreached
                await self._connected(connection, sock)
        except TimeoutError as error:
            raise fault(TimeoutError(), route, patience) from error
        except ssl.SSLError as error:
            raise await asyncio.to_thread(refused, error, route, patience) from error
        except OSError as error:
            raise fault(error, route, patience) from error
        return connection

    async def _connected(self, connection: _Connection, sock: socket.socket | None) -> None:
        """Take the connection over, with TLS where a socket is given: that is connected already."""
        route, loop = self._route, asyncio.get_running_loop()
        if sock is not None:
            sock.setblocking(False)
            try:
                tls = route.tls
                await loop.create_connection(
                    lambda: connection, sock=sock, ssl=tls, server_hostname=route.host
                )
            except BaseException:
                sock.close()
                raise
        elif route.unix:
            await loop.create_unix_connection(lambda: connection, route.unix)
        else:
            await loop.create_connection(lambda: connection, *route.peer)


def _text(headers: list[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers]
