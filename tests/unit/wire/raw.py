"""Servers of a few lines on threads: one that does with a connection what a test says; a forward proxy."""

from __future__ import annotations

import selectors
import socket
import socketserver
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATIENCE = 10.0


@contextmanager
def raw_server(handle: Callable[[socket.socket], None], path: Path | None = None) -> Iterator[str]:
    """Its `HOST:PORT`, or the path of its unix socket; at the end every connection is done with.

    Args:
        handle: is given each connection, which is closed afterwards.
        path: of a unix socket; a free port of the loopback otherwise.
    """

    class Handler(socketserver.BaseRequestHandler):
        request: socket.socket

        def handle(self) -> None:
            self.request.settimeout(PATIENCE)
            with suppress(OSError):
                handle(self.request)

    made: Any = socketserver.ThreadingTCPServer if path is None else socketserver.ThreadingUnixStreamServer
    with made(("127.0.0.1", 0) if path is None else str(path), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield str(path) if path else f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def head_of(connection: socket.socket) -> str:
    """Everything up to the empty line, read byte by byte."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        data = connection.recv(1)
        if not data:
            raise ConnectionError("no whole head came")
        head += data
    return head.decode("latin-1")


@dataclass
class Forward:
    """The running proxy, and the first lines and logins of what it was asked."""

    url: str = ""
    lines: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)


@contextmanager
def forward_proxy(refuses: bytes = b"") -> Iterator[Forward]:
    """It opens tunnels and passes on requests with a whole URL; names in `.test` lead to this machine.

    Args:
        refuses: what every request is answered with, instead of passing it on.
    """
    proxy = Forward()

    def handle(client: socket.socket) -> None:
        line, _, fields = head_of(client).partition("\r\n")
        proxy.lines.append(line)
        proxy.logins += [one for one in fields.split("\r\n") if one.startswith("proxy-authorization:")]
        if refuses:
            client.sendall(refuses)
            return
        method, target, _ = line.split(" ")
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host = "127.0.0.1" if (parts.hostname or "").endswith(".test") else parts.hostname
        with socket.create_connection((host or "", parts.port or 80), PATIENCE) as server:
            if method == "CONNECT":
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                path = f"{parts.path}?{parts.query}" if parts.query else parts.path
                server.sendall(f"{method} {path} HTTP/1.1\r\n{fields}".encode("latin-1"))
            _pass_on(client, server)

    with raw_server(handle) as where:
        proxy.url = f"http://{where}"
        yield proxy


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes both ways until either end closes."""
    with selectors.DefaultSelector() as selector:
        selector.register(one, selectors.EVENT_READ, other)
        selector.register(other, selectors.EVENT_READ, one)
        while ready := selector.select(PATIENCE):
            for key, _ in ready:
                source, sink = key.fileobj, key.data
                assert isinstance(source, socket.socket)
                data = source.recv(65_536)
                if not data:
                    return
                sink.sendall(data)
