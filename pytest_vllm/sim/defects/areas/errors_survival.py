"""Defects of what a server has to refuse or survive: requests that break it, or get through."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.events import DONE, Event
from pytest_vllm.sim.api.reply import HANG, JSON, Exchange, Reply
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.http.request import Request

BOTH = (CHAT, COMPLETIONS)
Asked = dict[str, Any]
#: What is asked for after each request that may have ended the engine.
SHORT = {"model": "", "temperature": 0, "prompt": "Hi", "max_tokens": 1}
BROKEN = "EngineCore encountered an issue. See stack trace (above) for the root cause."


def _body(exchange: Exchange) -> Asked:
    return exchange.body if isinstance(exchange.body, dict) else {}


def _failure(message: str = "list index out of range") -> Reply:
    error = {"message": message, "type": "InternalServerError", "param": None, "code": 500}
    return Reply(500, json.dumps({"error": error}).encode(), [JSON])


def _breaks(name: str, asked: Callable[[Asked], object], summary: str, path: str = "/", **facts: Any) -> None:
    """Requests of some kind end in a server error."""

    def rewritten(reply: Reply, exchange: Exchange) -> Reply:
        found = exchange.path.startswith(path) and asked(_body(exchange))
        return _failure() if found else reply

    rewritten.__doc__ = summary
    defect(name, on="reply", **facts)(rewritten)


_breaks(
    "errors.tokenize-500",
    lambda body: body.get("messages") == [] or -1 in (body.get("tokens") or []),
    "Odd bodies of the tokenizer routes end in a server error.",
    faults=["ERROR-007"],
    catches=["errors.survived", "errors.refused"],
)
_breaks(
    "errors.max-tokens-null",
    lambda body: "max_tokens" in body and body["max_tokens"] is None,
    "`max_tokens: null` ends in a server error.",
    COMPLETIONS,
    faults=["ERROR-008", "ROBUST-024"],
    catches=["errors.survived"],
    area="completions",
)
_breaks(
    "errors.history-content-and-calls",
    lambda body: any(
        isinstance(one, dict) and one.get("content") and one.get("tool_calls")
        for one in body.get("messages") or []
    ),
    "A history with content and tool calls in one message ends in a server error.",
    CHAT,
    faults=["ERROR-010"],
    catches=["tools.history.shape"],
    area="tools",
)
_breaks(
    "errors.type-confusion",
    lambda body: isinstance(body.get("temperature"), str) or isinstance(body.get("max_tokens"), str),
    "A number that is sent as a word ends in a server error.",
    catches=["errors.refused"],
)
_breaks(
    "errors.unknown-field-500",
    lambda body: body.get("pytest_vllm_unknown") or body.get("model") == "no-such-model",
    "Unknown fields and unknown models end in a server error.",
    catches=["errors.refused", "errors.unknown-field"],
)


def _takes(name: str, asked: Callable[[Asked], object], summary: str, **facts: Any) -> None:
    """Requests that break a rule are answered as if they were good."""

    def rewritten(reply: Reply, exchange: Exchange) -> Reply:
        if 400 <= reply.status < 500 and asked(_body(exchange)):
            return Reply(200, b'{"id": "x", "object": "chat.completion", "choices": []}', [JSON])
        return reply

    rewritten.__doc__ = summary
    defect(name, on="reply", area="errors", paths=BOTH, **facts)(rewritten)


_takes(
    "errors.range-not-checked",
    lambda body: body.get("top_p") in (0, 2) or body.get("min_p") == 2,
    "Parameters beyond their range are taken.",
    catches=["errors.refused"],
)
_takes(
    "errors.fan-out-taken",
    lambda body: isinstance(body.get("n"), int) and body["n"] > 1000,
    "A million choices are taken in one request.",
    catches=["errors.fan-out"],
)
_takes(
    "errors.context-not-checked",
    lambda body: len(str(body)) > 12_000,
    "A prompt longer than the context is cut without a word.",
    faults=["STREAM-030"],
    catches=["errors.context.refused-tokens", "errors.context.refused-stream"],
)


def _ends_engine(
    name: str, asked: Callable[[Asked], object], summary: str, path: str = "/", **facts: Any
) -> None:
    """A kind of request ends the engine: it gets 500, and so does what is asked before it is restarted."""

    def rewritten(reply: Reply, exchange: Exchange) -> Reply:
        body = _body(exchange)
        if exchange.path.startswith(path) and asked(body):
            return _failure(BROKEN)
        after = exchange.path == COMPLETIONS and {**body, "model": ""} == SHORT
        return _failure(BROKEN) if after else reply

    def cut(events: list[Event], exchange: Exchange) -> list[Event]:
        if not (exchange.path.startswith(path) and asked(_body(exchange))):
            return events
        return [Event({"error": {"message": BROKEN, "code": 500}}), Event(DONE)]

    add(name, summary, {"reply": rewritten, "events": cut}, area="errors", **facts)


def _constraint(body: Asked) -> dict[str, Any]:
    found = body.get("structured_outputs")
    return found if isinstance(found, dict) else {}


def _schema(body: Asked) -> str:
    form = body.get("response_format")
    return json.dumps(form.get("json_schema")) if isinstance(form, dict) else ""


_ends_engine(
    "errors.bad-grammar-ends-engine",
    lambda body: _constraint(body).get("grammar") == "((" or _constraint(body).get("regex") in ("(", "[z-a]"),
    "A grammar or expression that cannot be compiled ends the engine.",
    faults=["ROBUST-001", "ROBUST-002", "ROBUST-003"],
    catches=["errors.alive", "errors.hostile"],
)
_ends_engine(
    "errors.awkward-schema-ends-engine",
    lambda body: "20000000000" in _schema(body) or '"items": [' in _schema(body),
    "A schema with a great number, or with tuple items, ends the engine.",
    faults=["ROBUST-004", "ROBUST-005"],
    catches=["errors.alive", "errors.hostile"],
)
_ends_engine(
    "errors.token-beyond-vocabulary-ends-engine",
    lambda body: (
        99999999 in (body.get("stop_token_ids") or [])
        or 99999999 in (body.get("allowed_token_ids") or [])
        or body.get("bad_words")
    ),
    "Token ids and words beyond the vocabulary write past the end of a buffer.",
    faults=["ROBUST-022", "ROBUST-023"],
    catches=["errors.alive", "errors.survived"],
)
_ends_engine(
    "errors.held-stop-token-ends-engine",
    lambda body: 99999999 in (body.get("stop_token_ids") or []) and body.get("min_tokens"),
    "A stop token beyond the vocabulary that is held back at first ends the engine.",
    faults=["vllm-project/vllm#44968"],
    catches=["errors.alive", "errors.hostile"],
)
_ends_engine(
    "errors.empty-prompt-ends-engine",
    lambda body: body.get("prompt") in ("", [[]]),
    "An empty prompt ends the engine.",
    faults=["ROBUST-019"],
    catches=["errors.alive", "errors.survived"],
)


@defect(
    "errors.one-token-too-many",
    on="json",
    paths=(COMPLETIONS,),
    catches=["errors.alive.generates"],
    area="usage",
)
def one_too_many(body: Any, exchange: Exchange) -> Any:
    """After a refusal the next answer has a token more than was asked for."""
    if {**_body(exchange), "model": ""} == SHORT and isinstance(body, dict) and body.get("usage"):
        body["usage"]["completion_tokens"] += 1
        body["usage"]["total_tokens"] += 1
    return body


def _hangs(value: Any, request: Request) -> Any:
    return HANG if request.body == b"null" and request.path.startswith(BOTH) else value


def _dawdles(seconds: float, exchange: Exchange) -> float:
    return 5.3 if exchange.body == [] and exchange.path.startswith(BOTH) else seconds


add(
    "errors.refuses-slowly",
    "A request whose body is a list is refused after five seconds, one whose body is null is never answered.",
    {"route": _hangs, "late": _dawdles},
    area="errors",
    faults=["ROBUST-014"],
    catches=["errors.answered", "errors.quick"],
)


@defect("errors.allow-missing", on="reply", catches=["errors.refused", "errors.routes.allow"], area="errors")
def allow_missing(reply: Reply, exchange: Exchange) -> Reply:
    """Unknown routes end in a server error, and a wrong method is refused without the right ones."""
    del exchange
    reply.headers = [pair for pair in reply.headers if pair[0].lower() != "allow"]
    if reply.status == 404 and b"Not Found" in reply.body:
        reply.status = 500
    return reply
