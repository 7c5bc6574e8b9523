"""The one place that decides how a server is reached: proxy, TLS, base path, unix socket.

Whatever speaks to a server (attaching, health, probe, recording, measuring, scraping, preflight, fixtures
of own tests) asks `route_to` and follows the route. Nothing of ours but the list of failures is imported.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pytest_vllm.wire.proxy import Proxy, proxy_for
from pytest_vllm.wire.trust import SHOW, tls_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

UNIX = "unix:"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Access:
    """What a profile or the command line says about the way to a server; empty: the usual.

    Args:
        ca: file (or folder) of authorities to trust, beside the system's.
        certificate: file of a client certificate, with its key unless `key` names that.
        key: file of its key.
        proxy: URL of the proxy to use for every address, `none` for none; empty: the environment's.
    """

    ca: str = ""
    certificate: str = ""
    key: str = ""
    proxy: str = ""


@dataclass(frozen=True)
class Route:
    """The way to a server.

    Args:
        url: as people read it, no trailing slash.
        secure: whether TLS is spoken with the server.
        host: name or address, without brackets; `localhost` behind a unix socket.
        port: TCP port.
        prefix: the path in front of every path, without a trailing slash.
        unix: the unix socket's path; empty for TCP.
        proxy: the proxy in between; None for none.
        access: what was said about the way.
    """

    url: str
    secure: bool
    host: str
    port: int
    prefix: str = ""
    unix: str = ""
    proxy: Proxy | None = None
    access: Access = field(default_factory=Access)

    @property
    def authority(self) -> str:
        """The `Host` field: no port where it is the scheme's own."""
        return self._bracketed if self.port == _PORTS[self.scheme] else f"{self._bracketed}:{self.port}"

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return "https" if self.secure else "http"

    @property
    def where(self) -> str:
        """What a connection leads to, for messages: `HOST:PORT`, or the socket's path."""
        return self.unix or f"{self._bracketed}:{self.port}"

    @property
    def peer(self) -> tuple[str, int]:
        """The TCP address to connect to: the proxy's where there is one."""
        return (self.proxy.host, self.proxy.port) if self.proxy else (self.host, self.port)

    @property
    def tunnelled(self) -> bool:
        """Whether the proxy is asked for a tunnel: TLS goes through it unread."""
        return self.proxy is not None and self.secure

    @property
    def _bracketed(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def lead(self) -> str:
        """What stands in front of a path in the request line: the prefix; before it, for a proxy, the URL."""
        origin = f"http://{self.authority}" if self.proxy and not self.secure else ""
        return f"{origin}{self.prefix}"

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """Header fields for the proxy that reads the requests."""
        login = self.proxy.login if self.proxy and not self.secure else ""
        return (("proxy-authorization", login),) if login else ()

    @cached_property
    def tls(self) -> ssl.SSLContext | None:
        """How TLS is spoken; None where it is not. Raises TransportError when a file cannot be used."""
        access = self.access
        return tls_context(access.ca, access.certificate, access.key) if self.secure else None

    @property
    def hint(self) -> str:
        """What a connection may have wanted that was closed without a word."""
        wants = self.secure and not self.access.certificate
        # a server of Python's asyncio, as vLLM's is, sends no alert to who has no certificate
        return f" (over TLS it may want a client certificate: {SHOW})" if wants else ""

    @property
    def http_url(self) -> str:
        """The base URL for an HTTP library; behind a unix socket a name stands for it."""
        return f"http://localhost{self.prefix}" if self.unix else self.url


def route_to(url: str, access: Access | None = None, environ: Mapping[str, str] | None = None) -> Route:
    """The way to a server. Nothing is connected.

    Args:
        url: `http://HOST:PORT/PREFIX`, `https://…`, or `unix:/PATH` (`unix:/PATH:/PREFIX`).
        access: what a profile or the command line says.
        environ: where proxies are looked up; this process's by default.

    Raises ValueError when it is not such a URL, TransportError when the proxy that it names is none we speak.
    """
    access = access or Access()
    if url.startswith(UNIX):
        socket, _, prefix = url.removeprefix(UNIX).removeprefix("//").partition(":")
        if not socket.startswith("/"):
            raise ValueError(f"{url} does not name a unix socket by its absolute path: unix:/run/vllm.sock")
        return Route(url, False, "localhost", 80, prefix.rstrip("/"), socket, None, access)
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError(f"{url} is not the URL of an HTTP server")
    host, port = _ascii(parts.hostname), parts.port or _PORTS[parts.scheme]
    route = Route(url.rstrip("/"), parts.scheme == "https", host, port, parts.path.rstrip("/"), access=access)
    proxy = proxy_for(route.scheme, host, port, access.proxy, os.environ if environ is None else environ)
    return replace(route, proxy=proxy)


def _ascii(host: str) -> str:
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError as error:
        raise ValueError(f"{host} is not a host's name ({error})") from error
