"""Defects of refusals: their shape, their words, their status."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.events import Event
from pytest_vllm.sim.defects.make import spoil_events
from pytest_vllm.sim.defects.registry import defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.reply import Exchange, Reply

BOTH = (CHAT, COMPLETIONS)
TOO_LONG = "maximum context length"


@defect("errors.content-type", on="reply", paths=(COMPLETIONS,), catches=["errors.envelope.json"])
def plain_text(reply: Reply, exchange: Exchange) -> Reply:
    """Refusals say text/plain where they are JSON."""
    del exchange
    if reply.status >= 400:
        reply.headers = [pair for pair in reply.headers if pair[0].lower() != "content-type"]
        reply.headers.append(("content-type", "text/plain"))
    return reply


def _error(body: Any) -> dict[str, Any]:
    inner = body.get("error") if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) else {}


def _each(name: str, spoiled: Callable[[dict[str, Any], Exchange], Any], summary: str, **facts: Any) -> None:
    """A defect of the error object of refusals."""

    def rewritten(body: Any, exchange: Exchange) -> Any:
        error = _error(body)
        if error:
            spoiled(error, exchange)
        return body

    rewritten.__doc__ = summary
    defect(name, on="json", paths=BOTH, **facts)(rewritten)


def _drop(*keys: str) -> Callable[[dict[str, Any], Exchange], None]:
    def dropped(error: dict[str, Any], exchange: Exchange) -> None:
        del exchange
        for key in keys:
            error.pop(key, None)

    return dropped


def _set(**values: Any) -> Callable[[dict[str, Any], Exchange], None]:
    return lambda error, exchange: error.update(values) if exchange else None


_each(
    "errors.type-missing",
    _drop("type", "param"),
    "Errors have neither type nor param.",
    catches=["errors.envelope.keys"],
)
_each(
    "errors.code-fixed",
    _set(code=500),
    "Every error has the code 500, whatever its status is.",
    faults=["ERROR-009"],
    catches=["errors.envelope.code"],
)
_each("errors.no-words", _set(message=""), "Errors have an empty message.", catches=["errors.envelope.words"])
_each(
    "errors.same-words-for-all",
    _set(message="Invalid request", param=None),
    "Every refusal says `Invalid request` and nothing else.",
    catches=["errors.names-culprit"],
)
_each(
    "errors.shows-traceback",
    lambda error, exchange: error.update(
        message=f"{error['message']} Traceback (most recent call last): "
        f'File "/usr/lib/python3/vllm/entrypoints/{exchange.method}.py", line 12'
    ),
    "Errors show the server's traceback.",
    catches=["errors.no-internals"],
)
_each(
    "errors.repeats-input",
    lambda error, exchange: error.update(
        message=f"{error['message']} (got {str(exchange.body) * 40:.20000}) at 0x7f3a2b1c4d5e"
    ),
    "Errors repeat the whole request, and the address of the object that held it.",
    catches=["errors.no-internals", "errors.no-echo"],
)


@defect("errors.string", on="json", paths=(COMPLETIONS,), catches=["errors.envelope.keys"])
def error_is_text(body: Any, exchange: Exchange) -> Any:
    """An error is a bare text instead of an object."""
    del exchange
    return {"error": _error(body)["message"]} if _error(body) else body


@defect("errors.flat", on="json", paths=BOTH, catches=["errors.envelope.keys"])
def error_is_flat(body: Any, exchange: Exchange) -> Any:
    """The error's fields lie at the top, as they did before 0.10.1."""
    del exchange
    return {"object": "error", **_error(body)} if _error(body) else body


@defect("errors.no-json", on="reply", paths=(COMPLETIONS,), catches=["errors.envelope.json"])
def no_json(reply: Reply, exchange: Exchange) -> Reply:
    """Refusals are a page of HTML under the name of JSON."""
    del exchange
    if reply.status >= 400:
        reply.body = b"<html><body><h1>400 Bad Request</h1></body></html>"
    return reply


def _context(name: str, status: int, message: str, summary: str, **facts: Any) -> None:
    """A defect of the refusal of a prompt that is too long."""

    def rewritten(reply: Reply, exchange: Exchange) -> Reply:
        del exchange
        if reply.status == 400 and TOO_LONG.encode() in reply.body:
            reply.status = status
            words = re.sub(rb'"code":\s*400', b'"code":%d' % status, reply.body)
            old = re.search(rb'"message":\s*"(?:[^"\\]|\\.)*"', words)
            if message and old:
                words = words.replace(old[0], b'"message":"%b"' % message.encode())
            reply.body = words
        return reply

    rewritten.__doc__ = summary
    defect(name, on="reply", paths=("/v1/",), **facts)(rewritten)


_context(
    "errors.context-breaks-server",
    500,
    "",
    "A prompt that is too long ends in a server error.",
    faults=["ERROR-004", "ERROR-014"],
    catches=["errors.context.refused", "errors.context.refused-tokens"],
)
_context(
    "errors.context-413",
    413,
    "",
    "A prompt that is too long is refused with 413.",
    faults=["ERROR-003"],
    catches=["errors.context.refused"],
)
_context(
    "errors.context-wrong-limit",
    400,
    "This model's maximum context length is 3 tokens.",
    "The refusal of a long prompt names another limit.",
    faults=["ERROR-002"],
    catches=["errors.context.names-limit"],
)
_context(
    "errors.context-nonsense",
    400,
    "max_tokens must be at least 1, got -563072.",
    "The refusal of a long prompt speaks of a negative max_tokens.",
    faults=["ERROR-001"],
    catches=["errors.context.names-limit"],
)


@defect("errors.context-other-words", on="json", paths=(CHAT,), catches=["errors.context.same-words"])
def context_other_words(body: Any, exchange: Exchange) -> Any:
    """A long prompt is refused in other words when a stream was asked for."""
    error = _error(body)
    if TOO_LONG in str(error.get("message")) and exchange.streams:
        error["message"] = f"Stream failed: {error['message']}"
    return body


def _failing(events: list[Event]) -> bool:
    return bool(events) and isinstance(events[0].data, dict) and "error" in events[0].data


@defect("errors.stream-hides-failure", on="events", paths=BOTH, catches=["errors.stream.shown"])
def stream_hides(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream that cannot be made ends at once, without a word."""
    del exchange
    return events[-1:] if _failing(events) else events


@defect("errors.stream-other-code", on="events", paths=BOTH, catches=["errors.stream.code"])
def stream_other_code(events: list[Event], exchange: Exchange) -> list[Event]:
    """The client's mistake is a server error once it is streamed."""
    del exchange
    if _failing(events):
        events[0].data["error"]["code"] = 500
    return events


@defect("errors.stream-goes-on", on="events", paths=BOTH, catches=["errors.stream.nothing-else"])
def stream_goes_on(events: list[Event], exchange: Exchange) -> list[Event]:
    """After its error a stream goes on with an empty chunk."""
    del exchange
    if not _failing(events):
        return events
    return [events[0], Event({"choices": []}, when=events[0].when), *events[1:]]


@defect(
    "errors.stream-left-open", on="close", paths=BOTH, faults=["STREAM-021"], catches=["errors.stream.closed"]
)
def stream_left_open(how: str, exchange: Exchange) -> str:
    """A stream that failed stays open after its error."""
    constraint = (exchange.body or {}).get("structured_outputs") or {}
    return "open" if constraint.get("regex") == "(" else how


spoil_events(
    "errors.stream-wordless",
    "An error in a stream has an empty message.",
    BOTH,
    "error.message",
    "",
    catches=["errors.stream.shape"],
)
