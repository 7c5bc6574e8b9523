"""Defects of whole Responses answers: shape, counts, ending, refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.reply import JSON, Reply
from pytest_vllm.sim.defects.make import header, ignores, spoil
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import RESPONSES, only

if TYPE_CHECKING:
    from pytest_vllm.sim.api.reply import Exchange

HERE = (RESPONSES,)
HISTORIES = ("output_text", "function_call", "reasoning")


def _whole(body: Any) -> bool:
    return isinstance(body, dict) and body.get("object") == "response"


spoil(
    "responses.model-other",
    "An answer names another model.",
    HERE,
    "model",
    "gpt-5",
    catches=["responses.model"],
)
spoil(
    "responses.id-of-chat",
    "The id of an answer is that of a chat answer, always the same.",
    HERE,
    "id",
    "chatcmpl-1",
    catches=["responses.id.prefix", "responses.id.unique"],
)
spoil(
    "responses.item-ids-equal",
    "All items have the same id.",
    HERE,
    "output.*.id",
    "msg_1",
    catches=["responses.output.ids"],
)
spoil(
    "responses.output-empty",
    "An answer counts tokens and holds no item.",
    HERE,
    "output",
    [],
    catches=["responses.output.filled"],
)
spoil(
    "responses.role-missing",
    "The items of an answer name no role.",
    HERE,
    "output.*.role",
    catches=["responses.schema", "responses.output.message"],
)
spoil(
    "responses.total-wrong",
    "The total of tokens leaves out the answer.",
    HERE,
    "usage.total_tokens",
    1,
    catches=["responses.usage.sum"],
)
spoil(
    "responses.settings-not-told",
    "An answer tells other settings than it was made with, and what is missing in it not at all.",
    HERE,
    "temperature",
    1.0,
    catches=["responses.echo"],
)
spoil(
    "responses.never-ends",
    "The status of every whole answer is in_progress.",
    HERE,
    "status",
    "in_progress",
    catches=["responses.status"],
)
spoil(
    "responses.items-completed",
    "The items of an answer that was cut short call themselves completed.",
    HERE,
    "output.*.status",
    "completed",
    faults=["RESP-009"],
    catches=["responses.cut.item"],
)
spoil(
    "responses.details-missing",
    "Answers do not tell what is missing in them.",
    HERE,
    "incomplete_details",
    catches=["responses.schema-fully", "responses.cut.reason"],
)
spoil(
    "responses.details-always",
    "Complete answers, too, say that their tokens ran out.",
    HERE,
    "incomplete_details",
    {"reason": "max_output_tokens"},
    catches=["responses.completed.no-details"],
)
ignores(
    "responses.instructions-ignored",
    "Instructions do not reach the model.",
    ["instructions"],
    HERE,
    catches=["responses.input.instructions"],
)
header(
    "responses.labelled-text",
    "A Responses stream is labelled as plain text.",
    HERE,
    "content-type",
    "text/plain",
    catches=["responses.stream.content-type"],
    area="responses",
)


@defect(
    "responses.exhaustion-hidden",
    on="json",
    paths=HERE,
    faults=["RESP-010"],
    catches=["responses.cut.status", "responses.usage.counted"],
)
def exhaustion_hidden(body: Any, exchange: Exchange) -> Any:
    """An answer whose tokens ran out says completed, and counts none."""
    del exchange
    if _whole(body):
        usage = {**(body.get("usage") or {}), "output_tokens": 0}
        usage["total_tokens"] = usage.get("input_tokens", 0)
        body |= {"status": "completed", "incomplete_details": None, "usage": usage}
    return body


@defect("responses.miscounted", on="json", paths=HERE, catches=["responses.cut.tokens"])
def miscounted(body: Any, exchange: Exchange) -> Any:
    """One token of each answer is not counted."""
    del exchange
    if _whole(body) and body.get("usage"):
        for name in ("output_tokens", "total_tokens"):
            body["usage"][name] -= 1
    return body


@defect(
    "responses.lists-weigh-more",
    on="json",
    paths=HERE,
    catches=["responses.input.list", "responses.input.parts"],
)
def lists_weigh_more(body: Any, exchange: Exchange) -> Any:
    """A list of messages makes another prompt than a text, and parts another than a list."""
    given = exchange.body.get("input") if isinstance(exchange.body, dict) else None
    if _whole(body) and isinstance(given, list):
        more = 3 + sum(isinstance(item.get("content"), list) for item in given)
        for name in ("input_tokens", "total_tokens"):
            body["usage"][name] += more
    return body


@defect(
    "responses.system-weighs-more",
    on="json",
    paths=HERE,
    area="responses",
    catches=["responses.input.instructions-once", "responses.schema"],
)
def instructed_twice(body: Any, exchange: Exchange) -> Any:
    """Instructions are rendered twice, and counted as text."""
    if _whole(body) and isinstance(exchange.body, dict) and exchange.body.get("instructions"):
        for name in ("input_tokens", "total_tokens"):
            body["usage"][name] += 12
        body["usage"]["input_tokens_details"] = "twice"
    return body


@defect(
    "responses.unknown-field",
    on="json",
    paths=HERE,
    area="responses",
    catches=["responses.known-fields", "responses.schema"],
)
def unknown_field(body: Any, exchange: Exchange) -> Any:
    """An answer has a field that nobody knows, and its creation time as text."""
    del exchange
    if _whole(body):
        body |= {"pytest_vllm_secret_field": 1, "created_at": "yesterday"}
    return body


def _history(reply: Reply, exchange: Exchange) -> Reply:
    given = exchange.body.get("input") if isinstance(exchange.body, dict) else None
    if reply.status == 200 and isinstance(given, list) and any(name in str(given) for name in HISTORIES):
        return Reply(
            400,
            b'{"error": {"message": "2 validation errors", "type": "BadRequestError", "code": 400}}',
            [JSON],
        )
    return reply


add(
    "responses.history-refused",
    "The server's own output is refused as input.",
    {"reply": only(HERE, _history)},
    faults=["RESP-007"],
    catches=["responses.input.history", "responses.input.call-history"],
)


def _refusal(reply: Reply, exchange: Exchange) -> Reply:
    del exchange
    return Reply(500, reply.body, reply.headers) if 400 <= reply.status < 500 else reply


add(
    "responses.refusals-fail",
    "What should be refused breaks the server.",
    {"reply": only(HERE, _refusal)},
    catches=["responses.refused"],
)


def _bare(reply: Reply, exchange: Exchange) -> Reply:
    del exchange
    return Reply(reply.status, b'"no"', reply.headers) if 400 <= reply.status < 500 else reply


add(
    "responses.refusals-bare",
    "A refusal is a bare text.",
    {"reply": only(HERE, _bare)},
    catches=["responses.refused.envelope"],
)


def _anything(reply: Reply, exchange: Exchange) -> Reply:
    return Reply(200, b"{}", [JSON]) if "pytest_vllm_none" in exchange.path else reply


add(
    "responses.unknown-found",
    "A response that was never made is found, and can be cancelled.",
    {"reply": only(HERE, _anything)},
    catches=["responses.unknown", "responses.unknown.cancel", "responses.answered"],
)


def _other(reply: Reply, exchange: Exchange) -> Reply:
    if exchange.method == "GET" and reply.status == 200:
        reply.body = reply.body.replace(b'"status":"incomplete"', b'"status":"completed"')
        reply.body = reply.body.replace(
            b'"incomplete_details":{"reason":"max_output_tokens"}',
            b'"incomplete_details":{"reason":"content_filter"}',
        )
    return reply


add(
    "responses.stored-otherwise",
    "A stored response comes back with another status.",
    {"reply": only(HERE, _other)},
    environ=["VLLM_ENABLE_RESPONSES_API_STORE=1"],
    catches=["responses.stored.same"],
)
