"""One small request and its answer, blocking, with one deadline for all of it: health, scrapes, preflight.

The strict parser is h11, as in the recorder; a server that sends a byte a second cannot hold it up.
"""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.wire.dial import INCOMPLETE, dial
from pytest_vllm.wire.failure import Failure, TransportError
from pytest_vllm.wire.trust import refusal

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    import h11

    from pytest_vllm.wire.policy import Route

LIMIT = 16 * 1024 * 1024


@dataclass(frozen=True)
class Answer:
    """A whole response; header names in lower case."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        """The first field of that name; empty when absent."""
        return next((value for key, value in self.headers if key == name), "")

    @property
    def text(self) -> str:
        """The body as UTF-8, undecodable bytes replaced."""
        return self.body.decode("utf-8", "replace")


def ask(
    route: Route,
    path: str,
    *,
    timeout: float,
    method: str = "GET",
    key: str | None = None,
    body: bytes | None = None,
) -> Answer:
    """Ask once, on a connection of its own: no redirect, no retry.

    Args:
        route: the way to the server.
        path: absolute path, below the route's prefix.
        timeout: seconds for everything.
        method: HTTP method.
        key: API key to send.
        body: a JSON body.

    Raises TransportError when no whole response came.
    """
    import h11  # noqa: PLC0415 - preflight and launchers ask rarely

    deadline = time.monotonic() + timeout
    fields = [("host", route.authority), ("user-agent", "pytest-vllm"), ("accept", "*/*"), *route.fields]
    fields += [("connection", "close")]
    fields += [("authorization", f"Bearer {key}")] if key else []
    if body is not None:
        fields += [("content-type", "application/json"), ("content-length", str(len(body)))]
    connection = h11.Connection(h11.CLIENT)
    try:
        head = h11.Request(method=method, target=f"{route.lead}{path}", headers=fields)
        message = connection.send(head) or b""
        message += (connection.send(h11.Data(body)) or b"") if body else b""
        message += connection.send(h11.EndOfMessage()) or b""
    except h11.LocalProtocolError as error:
        raise TransportError(Failure.NOT_SENT, f"not sent: {error}") from error
    with dial(route, timeout) as sock:
        try:
            sock.settimeout(max(0.01, deadline - time.monotonic()))
            sock.sendall(message)
            return _read(connection, sock, deadline, route.hint)
        except TimeoutError as error:
            words = f"no complete answer from {route.where} within {timeout:g} s"
            raise TransportError(Failure.TIMEOUT_TOTAL, words) from error
        except h11.RemoteProtocolError as error:
            words = f"{route.where} does not speak HTTP/1.1: {error}"
            raise TransportError(Failure.PROTOCOL, words) from error
        except ssl.SSLError as error:  # in TLS 1.3 a missing client certificate is refused only now
            raise refusal(error, route.where) from error
        except TransportError:
            raise
        except OSError as error:
            words = f"the connection to {route.where} broke: {error}{route.hint}"
            raise TransportError(Failure.RESET, words) from error


def _read(connection: h11.Connection, sock: socket.socket, deadline: float, hint: str) -> Answer:
    import h11  # noqa: PLC0415 - as above

    head: h11.Response | None = None
    begun = False
    body: list[bytes] = []
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            sock.settimeout(left)
            data = sock.recv(65_536)
            if not data and head is None:
                raise TransportError(Failure.TRUNCATED, f"{INCOMPLETE}{'' if begun else hint}")
            begun = True
            connection.receive_data(data)
        elif isinstance(event, h11.Response):
            head = event
        elif isinstance(event, h11.Data):
            body.append(bytes(event.data))
            if sum(map(len, body)) > LIMIT:
                raise TransportError(Failure.PROTOCOL, f"the answer is longer than {LIMIT >> 20} MiB")
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            return Answer(head.status_code, _text(head.headers), b"".join(body))


def _text(headers: Sequence[tuple[bytes, bytes]]) -> tuple[tuple[str, str], ...]:
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
