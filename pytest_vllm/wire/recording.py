"""A request and what came back, with times: the only thing a check ever sees of a server."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_vllm.wire.failure import Failure, failure_in_words
from pytest_vllm.wire.sse import Event, read_stream, strict_json
from pytest_vllm.wire.template import refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = "pytest-vllm-recording"
#: 2: `failure` stands beside `error`; recordings of format 1 are still read.
FORMAT_VERSION = 2
#: How a request is refused for which there is no room.
SHED = (429, 503)


class Undecided(Exception):  # noqa: N818 - it is a verdict, not an error
    """The evidence does not allow a judgement: the check is undecided, the server not accused."""


class NotRun(Exception):  # noqa: N818 - it is a verdict, not an error
    """The requirement does not apply to this deployment: the check is not run."""


@dataclass(frozen=True)
class Request:
    """One HTTP request as it will be sent.

    Args:
        method: upper case HTTP method.
        path: absolute path with query.
        json: the body as a JSON value; None sends no body unless `content` is set.
        content: the body as raw text, for requests that are not valid JSON.
        headers: headers beside those that the client adds. A value None removes the client's own.
        abort_after: close the connection after this many events (0: right after the headers).
        timeout: seconds until the exchange is given up; None takes the run's own.
        expect: status that this request is meant to get; None when the check decides.
    """

    method: str
    path: str
    json: Any = None
    content: str | None = None
    headers: Mapping[str, str | None] = field(default_factory=dict)
    abort_after: int | None = None
    timeout: float | None = None
    expect: int | None = 200

    @property
    def streams(self) -> bool:
        """Whether the body asks for a stream."""
        return isinstance(self.json, dict) and bool(self.json.get("stream"))

    @property
    def prompts(self) -> int:
        """How many prompts or texts it asks about at once; the items of a response's input are one."""
        body = self.json if isinstance(self.json, dict) else {}
        given = body.get("prompt") or ([] if "/responses" in self.path else body.get("input"))
        return len(given) if isinstance(given, list) and given and not isinstance(given[0], int) else 1


@dataclass(frozen=True)
class Recording:
    """One exchange, recorded.

    Args:
        key: the exchange's id, with the case in brackets where there is one.
        request: what was sent (secrets already redacted).
        status: HTTP status; None when no response came.
        headers: response headers in order, names in lower case.
        chunks: (seconds since the request was sent, bytes) as read from the socket.
        sent: wall-clock time of sending, seconds since the epoch.
        headers_at: seconds from sending to the response head; None when no response came.
        seconds: seconds from sending to the last byte, or to the failure.
        error: the transport error in words; empty when the response ended cleanly.
        metrics_before: `/metrics` text scraped right before, for exchanges that ask for it.
        metrics_after: the same right after, once the server was idle again.
        aborted: whether we closed the connection on purpose.
        failure: what kind of transport error it was; None when the response ended cleanly.
    """

    key: str
    request: Request
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    chunks: tuple[tuple[float, bytes], ...] = ()
    sent: float = 0.0
    headers_at: float | None = None
    seconds: float = 0.0
    error: str = ""
    metrics_before: str | None = None
    metrics_after: str | None = None
    aborted: bool = False
    failure: Failure | None = None

    @cached_property
    def body(self) -> bytes:
        """Every byte of the response body."""
        return b"".join(chunk for _, chunk in self.chunks)

    @property
    def text(self) -> str:
        """The body as UTF-8, undecodable bytes replaced."""
        return self.body.decode(errors="replace")

    def header(self, name: str) -> str:
        """The first response header of that name, empty when absent."""
        return next((value for key, value in self.headers if key == name.lower()), "")

    @property
    def renamed(self) -> bool:
        """Whether its request got another name on the way: its `X-Request-Id` came back as another one."""
        brought = (value for name, value in self.request.headers.items() if name.lower() == "x-request-id")
        sent, told = next(brought, None), self.header("x-request-id")
        return bool(sent and told) and sent != told

    @cached_property
    def json(self) -> Any:
        """The body as JSON of any status. Raises Undecided when there is none.

        Read as strictly as other languages read it: UTF-8, no NaN, no Infinity.
        """
        self.answered()
        try:
            return strict_json(self.body.decode())
        except ValueError as error:
            raise Undecided(f"{self.key}: the body is not JSON ({error})") from error

    @property
    def ok(self) -> Any:
        """The JSON body of a 200 answer. Raises Undecided for any other, so one fault is blamed once."""
        if self.status != 200:
            raise Undecided(self._untested())
        return self.json

    @cached_property
    def _stream(self) -> tuple[list[Event], bytes]:
        return read_stream(list(self.chunks))

    @property
    def events(self) -> list[Event]:
        """The events of a 200 stream, comments left out. Raises Undecided when it was not answered so."""
        if self.status != 200:
            raise Undecided(self._untested())
        return self._stream[0]

    @property
    def unfinished(self) -> bytes:
        """Bytes at the end of the stream that no blank line closed."""
        return self._stream[1]

    @property
    def late(self) -> bool:
        """Whether time ran out before its end."""
        return self.failure is not None and self.failure.slow

    @cached_property
    def deltas(self) -> list[Any]:
        """The JSON objects of a stream: events that are JSON, without `[DONE]`.

        Raises Undecided when an event is not JSON (`stream.framing.json` is the check that says so), and when
        time ran out before its end: what had come by then is no answer (`answers.complete` judges that).
        """
        if self.late or (self.failure is not None and self.failure.ours):
            raise Undecided(f"{self.key} was not read to its end: {self.error}")
        try:
            return [event.json for event in self.events if not event.is_done]
        except ValueError as error:
            raise Undecided(f"{self.key}: an event is not JSON ({error})") from error

    @property
    def shed(self) -> bool:
        """Whether the server, or what stands in front, had no room for it and said so."""
        return self.status in SHED

    @property
    def bodies(self) -> list[Any]:
        """The JSON values of a 200 answer: what its stream brought, or the one body. Raises Undecided."""
        return self.deltas if self.request.streams else [self.ok]

    def _untested(self) -> str:
        if self.error.startswith("not sent"):
            return f"{self.key} was {self.error}"
        said = f"was answered with {self.status}" if self.status else f"got no response ({self.error})"
        return f"{self.key} {said}, so this was not tested"

    def answered(self) -> None:
        """Raise Undecided when no complete response came."""
        if self.status is None:
            raise Undecided(f"{self.key} got no response: {self.error}")

    def rendered(self) -> None:
        """As `answered`, and NotRun where the model's own template or tokenizer refuses the conversation."""
        self.answered()
        if why := refusal(self.status, self.text):
            raise NotRun(why)

    def with_response(self, **changes: Any) -> Recording:
        """A copy with other response parts, for defects that rewrite recordings."""
        return replace(self, **changes)


def dump(recording: Recording) -> str:
    """The recording as JSON lines: a head, one line per chunk, a tail."""
    request = recording.request
    head = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "key": recording.key,
        "sent": recording.sent,
        "request": {
            "method": request.method,
            "path": request.path,
            "json": request.json,
            "content": request.content,
            "headers": dict(request.headers),
            "abort_after": request.abort_after,
            "timeout": request.timeout,
            "expect": request.expect,
        },
        "status": recording.status,
        "headers": [list(pair) for pair in recording.headers],
        "headers_at": recording.headers_at,
    }
    tail = {
        "seconds": recording.seconds,
        "error": recording.error,
        "failure": recording.failure,
        "aborted": recording.aborted,
        "metrics_before": recording.metrics_before,
        "metrics_after": recording.metrics_after,
    }
    lines = [head, *(_chunk_line(at, chunk) for at, chunk in recording.chunks), tail]
    return "".join(_json_line(line) + "\n" for line in lines)


def load(text: str) -> Recording:
    """Read what `dump` wrote. Raises ValueError on another format, a newer version or a damaged text."""
    try:
        head, *chunks, tail = [json.loads(line) for line in text.split("\n") if line]
        ours, version = head["format"] == FORMAT, int(head["version"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"this is not a recording of pytest-vllm, or it is cut short ({error})") from error
    if not ours:
        raise ValueError(f"this is not a recording of pytest-vllm: its format is {head['format']!r}")
    if version > FORMAT_VERSION:
        raise ValueError(f"recording version {version} is newer than {FORMAT_VERSION}: update pytest-vllm")
    try:
        return Recording(
            key=head["key"],
            request=Request(**head["request"]),
            status=head["status"],
            headers=tuple((name, value) for name, value in head["headers"]),
            chunks=tuple((line["at"], _chunk_bytes(line)) for line in chunks),
            sent=head["sent"],
            headers_at=head["headers_at"],
            **{**tail, "failure": _failure(head, tail, version)},
        )
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"the recording is damaged or cut short ({reason})") from error


def _failure(head: Mapping[str, Any], tail: Mapping[str, Any], version: int) -> Failure | None:
    if version < 2:
        return failure_in_words(tail["error"], answered=head["status"] is not None)
    return None if tail["failure"] is None else Failure(tail["failure"])


def _json_line(line: dict[str, Any]) -> str:
    text = json.dumps(line, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can carry
        return json.dumps(line)
    return text


def _chunk_line(at: float, chunk: bytes) -> dict[str, Any]:
    try:
        return {"at": round(at, 6), "text": chunk.decode()}
    except UnicodeDecodeError:
        return {"at": round(at, 6), "base64": base64.b64encode(chunk).decode()}


def _chunk_bytes(line: dict[str, Any]) -> bytes:
    return line["text"].encode() if "text" in line else base64.b64decode(line["base64"])
