"""The other end of the driver's connections, played by the test itself: no thread, no chance.

The driver does nothing unless it is stepped, so what a read holds and when it is made is the test's to say.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Self

from pytest_vllm.measure.driver import Call, Driver

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds within which what was written on the loopback is there.
PATIENCE = 10.0
QUESTION = b"POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class Line:
    """A listening socket, and a driver that is to talk to it."""

    def __init__(self, *, stamps: bool = True) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(PATIENCE)
        self.port: int = self.listener.getsockname()[1]
        self.driver = Driver(f"http://127.0.0.1:{self.port}", stamps=stamps)
        self.ended: list[Call] = []
        self._peers: list[socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.driver.close()
        for one in (self.listener, *self._peers):
            one.close()

    def ask(self, message: bytes = QUESTION) -> Call:
        """A call that was handed to the driver."""
        return self.driver.submit(Call(message, self.ended.append, time.perf_counter()))

    def accept(self) -> socket.socket:
        """The other end of a new connection."""
        peer, _ = self.listener.accept()
        peer.settimeout(PATIENCE)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peers.append(peer)
        return peer

    def asked(self, message: bytes = QUESTION) -> tuple[Call, socket.socket]:
        """A call whose request has come in on a new connection, and that connection."""
        call = self.ask(message)
        peer = self.accept()
        self.until(lambda: call.sent > 0)
        assert heard(peer, len(message)) == message
        return call, peer

    def until(self, true: Callable[[], bool]) -> None:
        """Step the driver until something holds; fails when it never does."""
        deadline = time.perf_counter() + PATIENCE
        while not true():
            assert time.perf_counter() < deadline, "what was expected did not come"
            self.driver.step(0.05)

    def tell(self, peer: socket.socket, call: Call, *pieces: bytes) -> None:
        """Write pieces, each of which the driver reads by itself."""
        for piece in pieces:
            whole = call.size + len(piece)
            peer.sendall(piece)
            self.until(lambda whole=whole: call.size == whole)  # type: ignore[misc]


def heard(peer: socket.socket, much: int) -> bytes:
    """So many bytes that the driver sent."""
    found = b""
    while len(found) < much and (data := peer.recv(much - len(found))):
        found += data
    return found
