"""Which proxy, if any, stands between this machine and a server."""

from __future__ import annotations

import base64
import ipaddress
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pytest_vllm.wire.failure import Failure, TransportError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: `[server] proxy`: no proxy, whatever the environment says.
NONE = "none"
ASKED = "[server] proxy or --vllm-proxy"


@dataclass(frozen=True)
class Proxy:
    """An HTTP proxy.

    Args:
        host: its name or address.
        port: its port.
        source: where its address was found: a variable's name, or the profile.
        login: the `Proxy-Authorization` field; empty without one.
    """

    host: str
    port: int
    source: str
    login: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        """Its address without the login."""
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"

    def __str__(self) -> str:
        """Its address and where that was found."""
        return f"{self.url} ({self.source})"


def proxy_for(scheme: str, host: str, port: int, asked: str, environ: Mapping[str, str]) -> Proxy | None:
    """The proxy for an address; None for none.

    What the profile or the command line asks for counts for every address. Without it the environment does
    as curl reads it (`http_proxy`, `https_proxy`, `all_proxy`, `no_proxy`, in small letters first), and
    never for this machine itself.

    Raises TransportError when the proxy speaks a protocol that we do not.
    """
    if asked:
        return None if asked == NONE else _proxy(asked, ASKED)
    if is_loopback(host):
        return None
    for name in (f"{scheme}_proxy", "all_proxy"):
        source, url = _variable(name, environ)
        if url:
            return None if exempt(host, port, _variable("no_proxy", environ)[1]) else _proxy(url, source)
    return None


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(mapped.is_loopback or mapped.is_unspecified)


def exempt(host: str, port: int, no_proxy: str) -> bool:
    """Whether `NO_PROXY` names it: `*`, names with all below them, addresses, networks, also with a port."""
    return any(_names(entry, host.lower(), port) for entry in re.split(r"[,\s]+", no_proxy.lower()) if entry)


def _names(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    if found := re.fullmatch(r"(\[.*\]|[^:]*):(\d+)", entry):
        if int(found[2]) != port:
            return False
        entry = found[1]
    entry = entry.strip("[]")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = entry.removeprefix("*").strip(".")
        return bool(name) and (host.rstrip(".") == name or host.rstrip(".").endswith(f".{name}"))
    try:
        return address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False


def _variable(name: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Small letters first; set and empty, they switch the other spelling off too."""
    for spelling in (name, name.upper()):
        if spelling in environ:
            return spelling, environ[spelling].strip()
    return name, ""


def _proxy(url: str, source: str) -> Proxy:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        host, port = None, 0
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    if parts.scheme != "http":
        words = f"the proxy {shown} ({source}) speaks {parts.scheme}, and only http:// proxies are spoken to"
        raise TransportError(Failure.PROXY, words)
    if not host:
        raise TransportError(Failure.PROXY, f"{shown} ({source}) is not the URL of a proxy")
    login = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        login = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return Proxy(host, port, source, login)
