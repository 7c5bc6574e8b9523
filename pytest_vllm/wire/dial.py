"""A connected socket to a server, by its route: TCP or a unix socket, a proxy's tunnel, TLS.

Blocking, with one deadline for all of it. The recorder connects the same way in its event loop and takes
from here what has no counterpart there.
"""

from __future__ import annotations

import errno
import re
import socket
import ssl
import time
from typing import TYPE_CHECKING

from pytest_vllm.wire.failure import Failure, TransportError
from pytest_vllm.wire.trust import refusal

if TYPE_CHECKING:
    from pytest_vllm.wire.policy import Route

INCOMPLETE = "the connection closed before the response head was complete"
_HEAD_LIMIT = 65_536


def dial(route: Route, timeout: float) -> socket.socket:
    """Connect, and agree on TLS where it is spoken, within `timeout` seconds. Raises TransportError."""
    deadline, tls = time.monotonic() + timeout, route.tls
    plain = connect(route, timeout)
    if tls is None:
        return plain
    try:
        plain.settimeout(max(0.01, deadline - time.monotonic()))
        return tls.wrap_socket(plain, server_hostname=route.host)
    except ssl.SSLError as error:
        plain.close()
        raise refused(error, route, timeout) from error
    except OSError as error:
        plain.close()
        raise unagreed(error, route, timeout) from error


def connect(route: Route, timeout: float) -> socket.socket:
    """The same without TLS, a tunnel included where there is to be one."""
    deadline = time.monotonic() + timeout
    try:
        if route.unix:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                sock.settimeout(timeout)
                sock.connect(route.unix)
            except OSError:
                sock.close()
                raise
        else:
            sock = socket.create_connection(route.peer, timeout)
    except OSError as error:
        raise unreached(error, route, timeout) from error
    if not route.tunnelled:
        return sock
    try:
        _tunnel(sock, route, deadline)
    except OSError as error:
        sock.close()
        if isinstance(error, TransportError):
            raise
        words = f"the proxy {route.proxy} opened no tunnel to {route.where}: {_words(error, timeout)}"
        raise TransportError(Failure.PROXY, words) from error
    return sock


def unreached(error: OSError, route: Route, timeout: float) -> TransportError:
    """No connection came about: with the proxy, where there is one, and otherwise with the server."""
    if isinstance(error, TransportError):
        return error
    words = _words(error, timeout)
    if route.proxy is not None:
        return TransportError(Failure.PROXY, f"the proxy {route.proxy} cannot be reached: {words}")
    return TransportError(Failure.NO_CONNECTION, f"no connection to {route.where}: {words}")


def unagreed(error: OSError, route: Route, timeout: float) -> TransportError:
    """A connection stood, and the other end said nothing in TLS, or hung up on it."""
    if isinstance(error, TransportError):
        return error
    return TransportError(Failure.TLS, f"no TLS with {route.where}: {_words(error, timeout)}")


def refused(error: ssl.SSLError, route: Route, timeout: float) -> TransportError:
    """The failure of a handshake; who issued the certificate is looked up for it."""
    verified = not isinstance(error, ssl.SSLCertVerificationError)
    return refusal(error, route.where, b"" if verified else _presented(route, timeout))


def _presented(route: Route, timeout: float) -> bytes:
    """The certificate that the server shows, unread; empty when it shows none now."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with connect(route, timeout) as plain:
            plain.settimeout(timeout)
            with context.wrap_socket(plain, server_hostname=route.host) as shown:
                return shown.getpeercert(binary_form=True) or b""
    except OSError:
        return b""


def _tunnel(sock: socket.socket, route: Route, deadline: float) -> None:
    """Ask the proxy for a tunnel. Source: RFC 9110, section 9.3.6."""
    login = f"proxy-authorization: {route.proxy.login}\r\n" if route.proxy and route.proxy.login else ""
    sock.sendall(f"CONNECT {route.where} HTTP/1.1\r\nhost: {route.where}\r\n{login}\r\n".encode("latin-1"))
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _HEAD_LIMIT:
        sock.settimeout(max(0.01, deadline - time.monotonic()))
        data = sock.recv(1)  # what comes after the head is the server's already
        if not data:
            break
        head += data
    line = head.partition(b"\r\n")[0].decode("latin-1")
    if b"\r\n\r\n" not in head or not re.match(r"HTTP/1\.\d 2\d\d\b", line):
        said = f"it answered {line[:80]!r}" if line else "it closed the connection"
        words = f"the proxy {route.proxy} opened no tunnel to {route.where}: {said}"
        raise TransportError(Failure.PROXY, words)


def _words(error: OSError, timeout: float) -> str:
    if isinstance(error, TimeoutError) and error.errno is None:
        return f"none within {timeout:g} s"
    if error.errno == errno.ECONNREFUSED or f"[Errno {errno.ECONNREFUSED}]" in str(error):
        return "connection refused"
    return error.strerror or str(error) or type(error).__name__
