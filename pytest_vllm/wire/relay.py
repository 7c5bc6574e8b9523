"""A relay on the loopback between somebody's client and the server: passes everything on, and records it.

The client is given the relay's own token instead of the server's key, which is put in its place on the way.
Nothing else of a request is changed, but for scripts: a scripted server is told what to say to a prompt that
holds a mark, since no client knows how to tell it. Answers are passed on as they arrive.

It is the client's HTTP proxy as well, one that leads nowhere else: whom a client wants to reach besides is
written down and refused.
"""

from __future__ import annotations

import http.client
import json
import re
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from pytest_vllm.wire.dial import dial
from pytest_vllm.wire.failure import Failure, TransportError
from pytest_vllm.wire.policy import route_to
from pytest_vllm.wire.recording import Recording, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_vllm.wire.server import Server

#: The mark of a prompt that is to be answered by a script of that name.
MARK = re.compile(r"\[\[say:([a-z0-9-]+)\]\]")
#: Fields of one connection, which no relay passes on (RFC 9110, 7.6.1).
_HOP = {"connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade", "host"}
#: Items by which a conversation of the Responses interface shows that the model spoke.
_SPOKEN = {"reasoning", "function_call", "custom_tool_call", "local_shell_call"}
_PIECE = 65_536


class Relay:
    """Relays to one server while it is open. Use it in `with`.

    Args:
        server: where requests go, and the key that they get.
        keep: is given each exchange once it has ended, from the thread that relayed it; secrets included.
        said: mark -> what the model is to say, turn by turn; empty for a server that is not scripted.
        name: what keys of its recordings begin with.
        silence: seconds without a byte from the server after which an exchange is given up.
    """

    def __init__(
        self,
        server: Server,
        keep: Callable[[Recording], None],
        said: Mapping[str, Sequence[str]] | None = None,
        *,
        name: str = "relay",
        silence: float = 60.0,
    ) -> None:
        """Listens already; nothing is answered before `with`."""
        self.server, self.said, self.name, self.silence = server, said or {}, name, silence
        self.route = route_to(server.url, server.access)
        self.token = f"relay-{secrets.token_hex(16)}"
        #: Whom else the client wanted to reach, as `HOST:PORT` or a URL, in order of first mention.
        self.elsewhere: dict[str, None] = {}
        self._keep, self._count, self._lock = keep, 0, threading.Lock()
        self._http = _Listener(("127.0.0.1", 0), _Handler)
        self._http.relay = self

    @property
    def url(self) -> str:
        """Where the client finds it, without `/v1`."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        """Answer from now on."""
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Answer no more."""
        self._http.shutdown()
        self._http.server_close()

    def next_key(self) -> str:
        """The key of the next recording: numbered in the order of the requests."""
        with self._lock:
            self._count += 1
            return f"{self.name}.{self._count:03}"

    def keep(self, recording: Recording) -> None:
        """Hand over an exchange; one at a time."""
        with self._lock:
            self._keep(recording)

    def headers(self, given: Mapping[str, str]) -> dict[str, str]:
        """The client's own fields as the server gets them: with its key, without those of the connection."""
        key = self.server.api_key
        return {
            name: value.replace(self.token, key) if key else value
            for name, value in given.items()
            if name.lower() not in _HOP
        }

    def body(self, raw: bytes) -> bytes:
        """A request's body as the server gets it: with the script of its mark, where it has one."""
        if not self.said or b"[[say:" not in raw:
            return raw
        try:
            asked = json.loads(raw)
        except ValueError:
            return raw
        text = script_for(asked, self.said) if isinstance(asked, dict) else None
        return raw if text is None else json.dumps({**asked, "vllm_xargs": {"script": text}}).encode()


def script_for(asked: Mapping[str, Any], said: Mapping[str, Sequence[str]]) -> str | None:
    """What the model is to say next in a conversation: by its last mark, and the model's turns since.

    Without tools it says what comes last: a client that also asks for a title gets no call.
    """
    name, turn, spoke = "", 0, False
    for item in _conversation(asked):
        marks = MARK.findall(json.dumps(item, ensure_ascii=False))
        speaks = _is_models(item)
        if marks and not speaks:
            name, turn = marks[-1], 0
        elif speaks and not spoke:
            turn += 1
        spoke = speaks
    texts = said.get(name)
    if not texts:
        return None
    return texts[-1] if not asked.get("tools") else texts[min(turn, len(texts) - 1)]


def _conversation(asked: Mapping[str, Any]) -> Iterator[Any]:
    for field in ("messages", "input", "prompt"):
        found = asked.get(field)
        yield from found if isinstance(found, list) else [found] if found else []


def _is_models(item: Any) -> bool:
    return isinstance(item, dict) and (item.get("role") == "assistant" or item.get("type") in _SPOKEN)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    relay: Relay

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is its own affair."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listener

    def do_CONNECT(self) -> None:
        """A tunnel to the relay is this very connection; others are not dug."""
        if f"http://{self.path}" == self.server.relay.url:
            self.send_response_only(200, "Connection established")
            self.end_headers()
            self.close_connection = False  # whatever the request for the tunnel said of its own connection
        else:
            self.server.relay.elsewhere[self.path] = None
            self._refuse("it leads to the server alone", 403)
            self.close_connection = True

    def _relayed(self) -> None:
        relay = self.server.relay
        self.path = self.path.removeprefix(relay.url)  # as a client writes it that takes it for its proxy
        if not self.path.startswith("/"):
            relay.elsewhere[self.path] = None
            self._given()
            self._refuse("it leads to the server alone", 403)
            return
        key, wall, began = relay.next_key(), time.time(), time.monotonic()
        raw = self._given()
        body, headers = relay.body(raw), relay.headers(dict(self.headers.items()))
        if body != raw:
            headers = {k: v for k, v in headers.items() if k.lower() != "content-length"}
        asked = _as_request(self.command, self.path, dict(self.headers.items()), body)
        found = Recording(key, asked, sent=wall)
        chunks: list[tuple[float, bytes]] = []
        try:
            with _upstream(relay, self.command, self.path, body or None, headers) as answer:
                found = found.with_response(
                    status=answer.status,
                    headers=tuple((k.lower(), v) for k, v in answer.getheaders()),
                    headers_at=time.monotonic() - began,
                )
                self._pass_on(answer, lambda piece: chunks.append((time.monotonic() - began, piece)))
        except _Gone:
            found, self.close_connection = found.with_response(aborted=True), True
        except (OSError, http.client.HTTPException) as fault:
            failure, words = _failed(fault)
            found = found.with_response(error=words, failure=failure)
            self.close_connection = True
            if found.status is None:
                self._refuse(words)
        relay.keep(found.with_response(chunks=tuple(chunks), seconds=round(time.monotonic() - began, 6)))

    do_GET = do_POST = do_DELETE = do_PUT = do_HEAD = _relayed  # noqa: N815 - the names of http.server

    def _given(self) -> bytes:
        """The request's body, however the client framed it."""
        if "chunked" not in self.headers.get("transfer-encoding", "").lower():
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        whole = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return whole

    def _pass_on(self, answer: http.client.HTTPResponse, seen: Callable[[bytes], None]) -> None:
        self.send_response_only(answer.status, answer.reason)
        known = answer.getheader("content-length") is not None or answer.status in (204, 304)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP:
                self.send_header(name, value)
        if not known:
            self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        while piece := answer.read1(_PIECE):
            seen(piece)
            self._write(piece if known else b"%x\r\n%b\r\n" % (len(piece), piece))
        if known and answer.length:
            raise http.client.IncompleteRead(b"", answer.length)
        if not known:
            self._write(b"0\r\n\r\n")

    def _write(self, piece: bytes) -> None:
        try:
            self.wfile.write(piece)
            self.wfile.flush()
        except OSError as error:
            raise _Gone from error

    def _refuse(self, words: str, status: int = 502) -> None:
        body = json.dumps(
            {"error": {"message": f"the relay gives no answer: {words}", "code": status}}
        ).encode()
        self.send_response_only(status, "Refused by the relay")
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Nothing is printed: the recordings say it."""


class _Gone(Exception):  # noqa: N818 - a client may go when it likes
    """The client closed the connection."""


def _failed(fault: Exception) -> tuple[Failure, str]:
    if isinstance(fault, TransportError):
        return fault.failure, str(fault)
    words = f"{type(fault).__name__}: {fault}"
    if isinstance(fault, TimeoutError):
        return Failure.TIMEOUT_SILENCE, f"the server sent nothing for too long: {words}"
    if isinstance(fault, http.client.IncompleteRead):
        return Failure.TRUNCATED, f"the answer ended before it was complete: {words}"
    if isinstance(fault, http.client.HTTPException):
        return Failure.PROTOCOL, f"the answer is not HTTP/1.1: {words}"
    return Failure.RESET, f"the connection to the server broke: {words}"


class _upstream:  # noqa: N801 - used as a function
    """A request to the server on a connection of its own, and its answer; closed at the end."""

    def __init__(
        self, relay: Relay, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> None:
        self._connection = http.client.HTTPConnection(relay.route.host, relay.route.port)
        self._connection.sock = dial(relay.route, relay.silence)
        self._connection.sock.settimeout(relay.silence)
        own = {**headers, **dict(relay.route.fields), "Host": relay.route.authority}
        self._connection.request(method, f"{relay.route.lead}{path}", body, own)

    def __enter__(self) -> http.client.HTTPResponse:
        return self._connection.getresponse()

    def __exit__(self, *exc: object) -> None:
        self._connection.close()


def _as_request(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Request:
    kept = {name: value for name, value in headers.items() if name.lower() not in _HOP}
    try:
        value = json.loads(body) if body else None
    except ValueError:
        return Request(method, path, content=body.decode(errors="replace"), headers=kept, expect=None)
    return Request(method, path, json=value, headers=kept, expect=None)
