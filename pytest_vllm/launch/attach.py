"""A server that already runs. It is looked at and never stopped."""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import httpx

from pytest_vllm.launch.protocol import BootError, Exit
from pytest_vllm.launch.started import StartedServer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.launch.protocol import LaunchContext
    from pytest_vllm.profile.model import Profile

_CONNECT, _ANSWER = 2.0, 2.0
_API = re.compile(r"/v1(/.*)?$")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class AttachLauncher:
    """Connects to the profile's URL."""

    name = "attach"

    def start(self, profile: Profile, context: LaunchContext) -> AttachHandle:
        """Find out within five seconds whether anything answers there. Raises BootError when not."""
        if not profile.server.url:
            raise BootError(
                "the profile attaches to a server and names no URL",
                try_=("pass --vllm-url=http://HOST:PORT", '[server] url = "http://HOST:PORT"'),
            )
        url = base_url(profile.server.url)
        check_reachable(url)
        return AttachHandle(url, context)


class AttachHandle(StartedServer):
    """Somebody else's server: no log, no exit status, and `stop` leaves it alone."""

    has_logs = False

    def __init__(self, url: str, context: LaunchContext) -> None:
        """Remember where it is."""
        super().__init__(context)
        self.url: str | None = url
        self._url = url

    @property
    def description(self) -> str:
        """Where it runs, for people."""
        return f"server at {self._url}, already running"

    def alive(self) -> bool:
        """Whether its port takes a connection."""
        try:
            _connect(urlsplit(self._url)).close()
        except OSError:
            return False
        return True

    def exit(self) -> Exit | None:
        """Unknown for a server that is not ours."""
        return None

    def facts(self) -> Mapping[str, Any]:
        """The URL."""
        return {"url": self._url}

    def stop(self) -> None:
        """Leave it running."""


def base_url(given: str) -> str:
    """`spark:8000/v1/` becomes `http://spark:8000`. Raises BootError for what is no HTTP URL."""
    text = given.strip()
    parts = urlsplit(text if "://" in text else f"http://{text}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
        raise BootError(
            f"{_without_login(parts)} is no URL of an HTTP server",
            means="the gate speaks HTTP to the server's base URL",
            try_=(f"--vllm-url=http://{parts.hostname or 'HOST'}:8000",),
        )
    if parts.username:
        raise BootError(
            "the URL carries a login, which would end up in reports",
            try_=("leave it out and give the key as --vllm-api-key-env=VAR",),
        )
    # `/v1` and what clients append to it; a prefix in front of it, as of a reverse proxy, stays
    return f"{parts.scheme}://{parts.netloc}{_API.sub('', parts.path).rstrip('/')}"


def check_reachable(url: str) -> None:
    """Raises BootError when nothing answers HTTP at this URL. A slow answer is left to the waiting."""
    parts = urlsplit(url)
    try:
        _connect(parts).close()
    except OSError as error:
        raise _unreachable(url, error) from error
    try:
        with client_for(url, timeout=_ANSWER) as client:
            answer = client.get(f"{url}/health")
    except httpx.TimeoutException:
        return
    except httpx.HTTPError as error:
        raise BootError(
            f"something listens at {url} and does not speak {parts.scheme.upper()}",
            evidence=(str(error) or type(error).__name__,),
            try_=(f"try {'https' if parts.scheme == 'http' else 'http'}://{parts.netloc}",),
        ) from error
    if answer.status_code in _REDIRECTS:
        to = answer.headers.get("location", "")
        raise BootError(
            f"{url} redirects to {to}",
            means="clients of the API do not follow redirects of POST requests",
            try_=(f"--vllm-url={to.removesuffix('/health') or url}",),
        )


def client_for(url: str, timeout: float) -> httpx.Client:
    """A client that takes no proxy from the environment for an address of this machine."""
    host = urlsplit(url).hostname or ""
    local = host == "localhost" or host.startswith("127.") or host == "::1"
    return httpx.Client(timeout=httpx.Timeout(timeout), trust_env=not local)


def _connect(parts: SplitResult) -> socket.socket:
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return socket.create_connection((parts.hostname or "", port), timeout=_CONNECT)


def _unreachable(url: str, error: OSError) -> BootError:
    host = urlsplit(url).hostname
    if isinstance(error, socket.gaierror):
        return BootError(
            f"the name {host} is not known",
            evidence=(str(error),),
            try_=("check its spelling", "use the machine's address instead"),
        )
    refused = isinstance(error, ConnectionRefusedError)
    return BootError(
        f"nothing answers at {url}",
        evidence=(str(error),),
        means="the machine is there, but no server listens on that port"
        if refused
        else "no connection came about; the machine is off, elsewhere, or a firewall drops packets",
        try_=(f"curl -v {url}/health", "start the server, or boot one: --vllm-profile=NAME"),
    )


def _without_login(parts: SplitResult) -> str:
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
