"""A server that already runs. It is looked at and never stopped."""

from __future__ import annotations

import re
import socket
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from pytest_vllm.launch.access import access_of, fault_of
from pytest_vllm.launch.protocol import BootError, Exit
from pytest_vllm.launch.started import StartedServer
from pytest_vllm.wire.ask import ask
from pytest_vllm.wire.dial import connect, dial
from pytest_vllm.wire.failure import Failure, TransportError
from pytest_vllm.wire.policy import UNIX, Access, Route, route_to
from pytest_vllm.wire.trust import SHOW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.launch.protocol import LaunchContext
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.wire.ask import Answer

_CONNECT, _ANSWER, _GREETING = 2.0, 2.0, 0.5
_API = re.compile(r"/v1(/.*)?$")
#: Bad request, forbidden, nginx's own for client certificates and for plain HTTP.
_NOT_SO = frozenset({400, 403, 495, 496, 497})
#: A connection that was accepted and closed without a word.
_NOT_YET = (Failure.RESET, Failure.TRUNCATED)
#: Too early, too many: another time the answer is another one.
_LATER = (408, 425, 429)
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
        url, access = base_url(profile.server.url), access_of(profile)
        check_reachable(url, access)
        return AttachHandle(url, context, access)


class AttachHandle(StartedServer):
    """Somebody else's server: no log, no exit status, and `stop` leaves it alone."""

    has_logs = False

    def __init__(self, url: str, context: LaunchContext, access: Access | None = None) -> None:
        """Remember where it is."""
        super().__init__(context)
        self._route = route_to(url, access)
        self.url: str | None = url
        self._url = url

    @property
    def description(self) -> str:
        """Where it runs, for people."""
        return f"server at {self._url}, already running"

    def alive(self) -> bool:
        """Whether its port takes a connection."""
        try:
            connect(self._route, _CONNECT).close()
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
    """`spark:8000/v1/` becomes `http://spark:8000`. Raises BootError for what is not an HTTP URL.

    `unix:/run/vllm.sock` is where `vllm serve --uds` listens; a relative path counts from here.
    """
    text = given.strip()
    if text.startswith(UNIX):
        path, colon, prefix = text.removeprefix(UNIX).removeprefix("//").partition(":")
        return f"{UNIX}{Path(path).expanduser().absolute()}{colon}{_API.sub('', prefix).rstrip('/')}"
    parts = urlsplit(text if "://" in text else f"http://{text}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
        raise BootError(
            f"{_without_login(parts)} is not a URL of an HTTP server",
            means="the gate speaks HTTP to the server's base URL",
            try_=(f"--vllm-url=http://{parts.hostname or 'HOST'}:8000", "--vllm-url=unix:/run/vllm.sock"),
        )
    if parts.username:
        raise BootError(
            "the URL carries a login, which would end up in reports",
            try_=("leave it out and give the key as --vllm-api-key-env=VAR",),
        )
    # `/v1` and what clients append to it; a prefix in front of it, as of a reverse proxy, stays
    return f"{parts.scheme}://{parts.netloc}{_API.sub('', parts.path).rstrip('/')}"


def proxy_in_front(profile: Profile) -> str:
    """The proxy through which a running server will be reached, and why; empty for none."""
    if profile.server.launcher != "attach" or not profile.server.url:
        return ""
    try:
        route = route_to(base_url(profile.server.url), access_of(profile))
    except (BootError, OSError, ValueError):  # the start says it
        return ""
    return str(route.proxy or "")


def check_reachable(url: str, access: Access | None = None) -> None:
    """Raises BootError when nothing answers HTTP at this URL, or something that will never be a vLLM.

    A slow answer is left to the waiting, and so is a connection that is closed without a word: docker's proxy
    does that while the server in a container still loads.
    """
    try:
        route = route_to(url, access)
        dial(route, _CONNECT).close()
    except TransportError as fault:
        if fault.failure in (Failure.PROXY, Failure.TLS):
            raise fault_of(fault.failure, str(fault), url) from fault
        raise _unreachable(url, fault) from fault
    try:
        answer = ask(route, "/health", timeout=_ANSWER)
    except TransportError as fault:
        if fault.failure.slow or (fault.failure in _NOT_YET and not _speaks_first(route)):
            return
        if fault.failure in (Failure.PROXY, Failure.TLS):
            raise fault_of(fault.failure, str(fault), url) from fault
        raise _no_http(route, fault) from fault
    if route.proxy and (words := _of_the_proxy(answer)):
        raise fault_of(Failure.PROXY, f"the proxy {route.proxy} answered {words} itself", url)
    if wanted := _other_tls(answer, route):
        raise wanted
    if answer.status in _REDIRECTS:
        to = answer.header("location")
        raise BootError(
            f"{url} redirects to {to}",
            means="clients of the API do not follow redirects of POST requests",
            try_=(f"--vllm-url={to.removesuffix('/health') or url}",),
        )
    if HTTPStatus.BAD_REQUEST <= answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        _refused(route, answer)


def _speaks_first(route: Route) -> bool:
    """Whether what listens says something unasked, as databases and mail servers do and HTTP never does."""
    try:
        with dial(route, _CONNECT) as sock:
            sock.settimeout(_GREETING)
            return bool(sock.recv(1))
    except OSError:
        return False


def _refused(route: Route, health: Answer) -> None:
    """Raises BootError when the list of models is refused like `/health`: no waiting changes that.

    A key that is wanted is the probe's to name: it knows whether one was given.
    """
    try:
        models = ask(route, "/v1/models", timeout=_ANSWER)
    except TransportError:
        return
    keyed = models.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
    if keyed or models.status in _LATER or not 400 <= models.status < 500:
        return
    said = " ".join(models.text[:200].split())
    raise BootError(
        f"what answers at {route.url} refuses /health and the list of models",
        evidence=(f"GET /health: {health.status}", f"GET /v1/models: {models.status} {said}".rstrip()),
        means="a vLLM that runs or loads answers one of the two otherwise: this is another server, or path",
        try_=("check the port and the path in front of it", "give the base URL, without /v1"),
    )


def _of_the_proxy(answer: Answer) -> str:
    """The answer in short, where it is the proxy's own and not the server's; empty otherwise.

    Sources: RFC 9110, section 15.5.8; RFC 9209 (`Proxy-Status`); Squid's own field for its error pages.
    """
    marks = [name for name in ("proxy-authenticate", "x-squid-error", "proxy-status") if answer.header(name)]
    said = f"{answer.status} {answer.header(marks[0])[:80] if marks else ''}".strip()
    own = answer.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED
    return said if own or (marks and answer.status >= HTTPStatus.BAD_REQUEST) else ""


def _other_tls(answer: Answer, route: Route) -> BootError | None:
    """What a web server in front says in plain words when TLS is not as it wants it."""
    said = " ".join(re.sub(r"<[^>]*>", " ", answer.text[:2000]).split())[:160]
    if answer.status not in _NOT_SO:
        return None
    if route.secure and not route.access.certificate and re.search(r"certificate", said, re.IGNORECASE):
        words = f"the server answered {answer.status} {said!r}; give one: {SHOW}"
        return fault_of(Failure.TLS, words, route.url)
    if not route.secure and re.search(r"\bHTTPS\b", said):
        return BootError(
            f"what listens at {route.url} speaks TLS alone",
            evidence=(f"GET /health: {answer.status} {said}",),
            try_=(f"--vllm-url={route.url.replace('http://', 'https://', 1)}",),
        )
    return None


def _no_http(route: Route, fault: TransportError) -> BootError:
    other = "https" if route.scheme == "http" else "http"
    plain = route.unix or route.proxy or route.secure
    return BootError(
        f"something listens at {route.url} and does not speak {route.scheme.upper()}",
        evidence=(str(fault),),
        try_=("check host and port",) if plain else (f"try {other}://{route.authority}",),
    )


def _unreachable(url: str, fault: TransportError) -> BootError:
    host = urlsplit(url).hostname
    error = fault.__cause__
    if isinstance(error, socket.gaierror):
        return BootError(
            f"the name {host} is not known",
            evidence=(str(error),),
            try_=("check its spelling", "use the machine's address instead"),
        )
    if url.startswith(UNIX):
        return BootError(
            f"nothing answers at {url}",
            evidence=(str(fault),),
            means="no server listens on that socket, or this user may not open it",
            try_=(
                f"ls -l {url.removeprefix(UNIX).partition(':')[0]}",
                "start the server: vllm serve --uds PATH",
            ),
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
