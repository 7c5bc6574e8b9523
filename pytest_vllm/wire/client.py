"""Sends requests and records what comes back, byte for byte: no retry, redirect, cookie or coercion."""

from __future__ import annotations

import asyncio
import time
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Self

import httpx

from pytest_vllm.wire.allowance import Allowance
from pytest_vllm.wire.endless import Endless
from pytest_vllm.wire.failure import Failure, TransportError
from pytest_vllm.wire.http1 import Arrivals, Http1Transport
from pytest_vllm.wire.policy import route_to
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.redact import Redactor
from pytest_vllm.wire.request import encoded_body, own_headers, target
from pytest_vllm.wire.sse import SSEReader, is_comment

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.wire.server import Server

CONNECT_SECONDS = 15.0
GAP_SECONDS = 60.0
EXCHANGE_SECONDS = 300.0
#: What is asked again and again, and kept around few exchanges: it does not count as kept.
SCRAPED = "/metrics"


class WireClient:
    """Records exchanges with one server. Use it in `async with`.

    Args:
        server: where to send, and the key to send.
        redactor: hides secrets in recordings; the server's own key is always hidden.
        connect: seconds until a connection must stand.
        gap: seconds without a byte, once the response head is there, after which an exchange is given up.
        exchange: seconds for a whole exchange whose request does not say.
    """

    def __init__(
        self,
        server: Server,
        redactor: Redactor | None = None,
        *,
        connect: float = CONNECT_SECONDS,
        gap: float = GAP_SECONDS,
        exchange: float = EXCHANGE_SECONDS,
    ) -> None:
        """Nothing is connected yet. Raises TransportError when the proxy that the route names is none."""
        self.url = server.url.rstrip("/")
        self._route = route_to(self.url, server.access)
        password = httpx.URL(self._route.http_url).password
        self.redactor = (redactor or Redactor()).knowing(server.api_key, password)
        self._key = server.api_key
        self._exchange = exchange
        self._allowance = Allowance()
        transport = Http1Transport(self._route, self._allowance)
        #: When the latest piece of any event stream came.
        self.pulse = transport.pulse
        self._http = httpx.AsyncClient(
            transport=transport,
            timeout=httpx.Timeout(connect=connect, read=gap, write=None, pool=None),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            follow_redirects=False,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        """Ready at once."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close what is open."""
        await self._http.aclose()

    async def send(self, key: str, request: Request) -> Recording:
        """Send the request once and record the exchange, redacted.

        What goes wrong on the way is `Recording.error` in words, never an exception.
        """
        if self._allowance.spent and request.method == "POST":
            words = f"not sent: {self._allowance.spent}"
            unsent = Recording(key, request, sent=time.time(), error=words, failure=Failure.NOT_SENT)
            return self.redactor.recording(unsent)
        limit = self._exchange if request.timeout is None else request.timeout
        response: httpx.Response | None = None
        failure: Failure | None = None
        error, aborted = "", False
        wall, began = time.time(), time.perf_counter()
        try:
            async with asyncio.timeout(limit):
                response = await self._http.send(self._wire_request(request), stream=True)
                try:
                    aborted = await _read(response.extensions["arrivals"], request)
                finally:
                    await response.aclose()
        except TimeoutError:
            failure = Failure.TIMEOUT_FIRST_BYTE if response is None else Failure.TIMEOUT_TOTAL
            error = f"not complete within {limit:g} s"
        except TransportError as fault:
            failure, error = fault.failure, str(fault)
        except (ValueError, TypeError, httpx.HTTPError, httpx.InvalidURL) as fault:
            # a body that is not JSON, a header that is not a header
            failure, error = Failure.NOT_SENT, f"not sent: {fault}"
        taken = time.perf_counter() - began
        recording = Recording(key, request, sent=wall, seconds=round(taken, 6), aborted=aborted)
        if response is not None:
            recording = _with_response(recording, response, began, failed=bool(error) or aborted)
        if not request.path.startswith(SCRAPED):
            self._allowance.used += sum(len(piece) for _, piece in recording.chunks)
        words = _in_words(error, failure, recording)
        return self.redactor.recording(recording.with_response(error=words, failure=failure))

    def _wire_request(self, request: Request) -> httpx.Request:
        body = encoded_body(request)
        wire = httpx.Request(
            request.method,
            self._route.http_url,
            headers=self._headers(request, body),
            content=body,
            extensions={
                "timeout": {**self._http.timeout.as_dict(), **self._patience(request)},
                "target": f"{self._route.lead}{target(request.path)}".encode(),
            },
        )
        for name, value in request.headers.items():
            if value is None and name in wire.headers:
                del wire.headers[name]
        return wire

    def _patience(self, request: Request) -> dict[str, float]:
        """No limit to silence of its own where an answer may be held back until it is whole.

        A call that has to be made is written by a constraint, and a parser may wait for its end.
        """
        body = request.json if isinstance(request.json, dict) else {}
        held_back = bool(body.get("tools")) and body.get("tool_choice") not in (None, "auto", "none")
        return {"read": self._exchange} if held_back and request.streams else {}

    def _headers(self, request: Request, body: bytes | None) -> list[tuple[str, str]]:
        own = own_headers(has_body=body is not None)
        if self._key:
            own["authorization"] = f"Bearer {self._key}"
        for name, value in request.headers.items():
            own.pop(name.lower(), None)
            if value is not None:
                own[name] = value
        return [*own.items(), *self._route.fields]


def _with_response(
    recording: Recording, response: httpx.Response, began: float, *, failed: bool
) -> Recording:
    """Times count from the handing of the request to the socket: connecting is not the server's work."""
    arrivals: Arrivals = response.extensions["arrivals"]
    zero = arrivals.sent_at
    ended = began + recording.seconds if failed else arrivals.last_at
    return recording.with_response(
        status=response.status_code,
        headers=tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in _pairs(response)),
        chunks=tuple((round(at - zero, 6), piece) for at, piece in arrivals.pieces),
        sent=recording.sent + (zero - began),
        headers_at=round(arrivals.head_at - zero, 6),
        seconds=round(ended - zero, 6),
    )


def _pairs(response: httpx.Response) -> list[tuple[bytes, bytes]]:
    return [(name.lower(), value) for name, value in response.headers.raw]


async def _read(arrivals: Arrivals, request: Request) -> bool:
    """Read the body to its end, or to the event after which to close; whether we closed the connection.

    Raises TransportError when the body does not end cleanly, or goes on where it should have ended.
    """
    if request.abort_after is None:
        endless = Endless(request)
        if await arrivals.finished(endless if request.streams else None):
            raise TransportError(Failure.PROTOCOL, endless.why)
        return False
    if request.abort_after == 0:
        return arrivals.stop()
    return await arrivals.finished(_after_events(request.abort_after))


def _after_events(count: int) -> Callable[[float, bytes], bool]:
    reader = SSEReader()
    seen = 0

    def enough(at: float, piece: bytes) -> bool:
        nonlocal seen
        seen += sum(not is_comment(event) for event in reader.feed(at, piece))
        return seen >= count

    return enough


def _in_words(error: str, failure: Failure | None, recording: Recording) -> str:
    if failure is None or failure in (Failure.NOT_SENT, Failure.UNFIT) or failure.unreached:
        return error
    if recording.status is None:
        return f"{error}, and no response came" if failure is Failure.TIMEOUT_FIRST_BYTE else error
    return f"{error} (status {recording.status} and {len(recording.body)} bytes of the body had come)"
