"""Small servers in a thread, for what talks to a whole server."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator


class Asked(BaseHTTPRequestHandler):
    """A request. Any GET is answered with 404: such a server has no metrics."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    text = b""

    def do_GET(self) -> None:
        self.tell(404, b"")

    def tell(self, status: int, body: bytes, kind: str = "application/json") -> None:
        """A whole answer."""
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def hold(self) -> None:
        """Say nothing until the test is over."""
        assert isinstance(self.server, Serving)
        self.server.over.wait()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        pass


class Serving(ThreadingHTTPServer):
    """`over` is set once the test is over."""

    daemon_threads = False

    def __init__(self, handler: type[Asked]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.over = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client went away, as some tests want."""


@contextmanager
def serving(
    answer: Callable[[Asked], None],
    *,
    tls: ssl.SSLContext | None = None,
    got: Callable[[Asked], None] = Asked.do_GET,
) -> Iterator[Server]:
    """A server that answers every POST with this, and a GET with 404; its threads have ended afterwards."""

    class Answering(Asked):
        def do_POST(self) -> None:
            self.text = self.rfile.read(int(self.headers["content-length"]))
            answer(self)

        def do_GET(self) -> None:
            got(self)

    server = Serving(Answering)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield Server(f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}", "m")
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
