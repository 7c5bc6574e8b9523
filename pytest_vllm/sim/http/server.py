"""A small HTTP/1.1 server: keep-alive, pipelining, chunked responses, notice of a client that went away.

One `Connection` per socket. Requests of a connection are answered one after the other. A handler gets a
`Call` and answers on it once, either whole (`reply`) or as a stream (`start`, `send`, `end`).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from email.utils import formatdate
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.http.request import BadRequest, Request, RequestReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Headers = list[tuple[str, str]]
_INVALID = b"Invalid HTTP request received."


class Call:
    """A request and the way to answer it.

    `gone` tells that the client closed the connection; `on_gone` are called once when that happens.
    """

    def __init__(self, connection: Connection, request: Request) -> None:
        """Bind a request to its connection."""
        self.connection = connection
        self.request = request
        self.gone = False
        self.on_gone: list[Callable[[], None]] = []
        self.on_end: list[Callable[[int, int], None]] = []
        self.started = False
        self.ended = False
        self.began = time.monotonic()
        self.status = 0
        self.sent = 0

    @cached_property
    def asked(self) -> Any:
        """The body that was sent, read as JSON; None when it is none."""
        try:
            return json.loads(self.request.body)
        except (ValueError, RecursionError):
            return None

    def reply(self, status: int, body: bytes, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Answer whole."""
        self.begin(
            status, [("content-length", str(len(body))), *headers], body if self._has_body(status) else b""
        )
        self.finish()

    def start(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """Begin a chunked answer."""
        self.begin(status, [*headers, ("transfer-encoding", "chunked")])

    def send(self, data: bytes) -> None:
        """Write one chunk."""
        self.raw(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self) -> None:
        """End a chunked answer."""
        self.raw(b"0\r\n\r\n")
        self.finish()

    def begin(self, status: int, headers: Iterable[tuple[str, str]], body: bytes = b"") -> None:
        """Write the head, and the body in the same packet. Framing headers are the caller's."""
        if self.gone:
            return
        self.started, self.status = True, status
        lines = [f"HTTP/1.1 {status} {_phrase(status)}", f"date: {self.connection.date()}", "server: uvicorn"]
        lines += [f"{name}: {value}" for name, value in headers]
        if not self.request.keep_alive:
            lines.append("connection: close")
        self.sent += len(body)
        self.raw("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)

    def raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        if not self.gone:
            self.sent += len(data)
            self.connection.transport.write(data)

    def finish(self) -> None:
        """The answer is complete: the connection takes its next request."""
        if self.ended:
            return
        self.ended = True
        for done in self.on_end:
            done(self.status, self.sent)
        self.connection.finished(self)

    def drop(self) -> None:
        """Cut the connection without ending the answer."""
        self.ended = True
        self.connection.transport.abort()

    def _has_body(self, status: int) -> bool:
        return self.request.method != "HEAD" and status not in (204, 304)

    def client_left(self) -> None:
        """The connection is closed by the client."""
        self.gone = True
        for leave in self.on_gone:
            leave()
        self.on_gone.clear()
        if self.started and not self.ended:  # what had begun counts as answered
            self.finish()


class Connection(asyncio.Protocol):
    """One socket."""

    transport: asyncio.Transport

    def __init__(self, handle: Callable[[Call], None], open_connections: set[Connection]) -> None:
        """Take the function that gets every call."""
        self._handle = handle
        self._open = open_connections
        self._reader = RequestReader()
        self._waiting: deque[Request] = deque()
        self._call: Call | None = None
        self._bad = False
        self._continued = False
        self._date = (0.0, "")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - TCP gives one
        transport.set_write_buffer_limits(high=1 << 26)
        self.transport = transport
        self._open.add(self)

    def data_received(self, data: bytes) -> None:
        """Read requests; the first is handled at once, others wait their turn."""
        self._reader.feed(data)
        try:
            while (request := self._reader.next()) is not None:
                self._waiting.append(request)
                self._continued = False
        except BadRequest:
            self._bad = True
        if self._reader.expects_continue() and not self._continued:
            self._continued = True
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._serve()

    def eof_received(self) -> bool:
        """A client that closes its half is gone, as uvicorn sees it."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the call in progress."""
        del exc
        self._open.discard(self)
        self._waiting.clear()
        call, self._call = self._call, None
        if call is not None:
            call.client_left()

    def finished(self, call: Call) -> None:
        """Go on with the next request, or close."""
        if self._call is not call:
            return
        self._call = None
        if not call.request.keep_alive:
            self.transport.close()
        else:
            self._serve()

    def date(self) -> str:
        """The HTTP date, made once a second."""
        now = time.time()
        if now - self._date[0] >= 1:
            self._date = (now, formatdate(now, usegmt=True))
        return self._date[1]

    def _serve(self) -> None:
        while self._call is None and self._waiting and not self.transport.is_closing():
            self._call = call = Call(self, self._waiting.popleft())
            self._handle(call)
        if self._bad and self._call is None and not self.transport.is_closing():
            head = "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n"
            head += f"content-length: {len(_INVALID)}\r\nconnection: close\r\n\r\n"
            self.transport.write(head.encode() + _INVALID)
            self.transport.close()


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
