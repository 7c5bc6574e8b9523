"""Defects of whole Messages answers: shape, counts, ending, refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.reply import JSON, Reply
from pytest_vllm.sim.defects.make import header, ignores, spoil
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import MESSAGES, only

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.reply import Exchange

HERE = (MESSAGES,)
KEY = "VLLM_API_KEY=sk-pytest-vllm-simulated"

spoil(
    "messages.model-other",
    "An answer names another model.",
    HERE,
    "model",
    "claude-opus",
    catches=["messages.model"],
)
spoil(
    "messages.ids-equal",
    "All answers have the same id.",
    HERE,
    "id",
    "chatcmpl-1",
    catches=["messages.id.unique"],
)
spoil(
    "messages.content-empty",
    "An answer counts tokens and holds no block.",
    HERE,
    "content",
    [],
    faults=["MSG-009"],
    catches=[
        "messages.content.filled",
        "messages.content.blocks",
        "messages.stop.blocks",
        "messages.call.block",
    ],
)
spoil(
    "messages.role-other",
    "An answer is by the user, and has a field that nobody knows.",
    HERE,
    "role",
    "user",
    catches=["messages.schema"],
)
spoil(
    "messages.usage-zero",
    "No tokens are counted.",
    HERE,
    "usage",
    {"input_tokens": 0, "output_tokens": 0},
    faults=["MSG-005"],
    area="usage",
    catches=["messages.usage.counted", "usage.messages-agrees"],
)
spoil(
    "messages.reason-end-turn",
    "Every answer, whatever ended it, stopped at the end of its turn.",
    HERE,
    "stop_reason",
    "end_turn",
    faults=["MSG-008"],
    catches=[
        "messages.stop.reason",
        "messages.stop.sequence",
        "messages.call.reason",
        "messages.stop.blocks",
    ],
)
spoil(
    "messages.counts-nothing",
    "The route that counts tokens counts none.",
    ("/v1/messages/count_tokens",),
    "input_tokens",
    0,
    faults=["MSG-004"],
    catches=["messages.count.agrees", "messages.count.tools"],
)
ignores(
    "messages.system-ignored",
    "The system text does not reach the model.",
    ["system"],
    HERE,
    catches=["messages.input.system"],
)
header(
    "messages.labelled-text",
    "A Messages stream is labelled as plain text.",
    HERE,
    "content-type",
    "text/plain",
    area="messages",
    catches=["messages.stream.content-type"],
)


def _message(body: Any) -> bool:
    return isinstance(body, dict) and body.get("type") == "message"


def _sent(exchange: Exchange) -> dict[str, Any]:
    return exchange.body if isinstance(exchange.body, dict) else {}


@defect("messages.sequence-always", on="json", paths=HERE, catches=["messages.stop.no-sequence"])
def sequence_always(body: Any, exchange: Exchange) -> Any:
    """Every answer names a stop sequence, and has a field that nobody knows."""
    del exchange
    if _message(body):
        body |= {"stop_sequence": "###", "pytest_vllm_secret_field": 1}
    return body


@defect(
    "messages.blocks-weigh-more",
    on="json",
    paths=HERE,
    catches=["messages.input.parts", "messages.input.system-blocks"],
)
def blocks_weigh_more(body: Any, exchange: Exchange) -> Any:
    """Blocks make another prompt than the same text."""
    sent = _sent(exchange)
    lists = [
        sent.get("system"),
        *(turn.get("content") for turn in sent.get("messages") or () if isinstance(turn, dict)),
    ]
    if _message(body) and any(isinstance(one, list) for one in lists):
        body["usage"]["input_tokens"] += 5
    return body


@defect(
    "messages.prompt-other",
    on="json",
    paths=HERE,
    area="usage",
    catches=["usage.messages-agrees", "messages.usage.like-chat", "messages.text.like-chat"],
)
def prompt_other(body: Any, exchange: Exchange) -> Any:
    """The prompt is another than that of the same chat, and so is the answer."""
    del exchange
    if _message(body):
        body["usage"]["input_tokens"] += 7
        for block in body["content"]:
            if block.get("text"):
                block["text"] = f"{block['text']}!"
    elif isinstance(body, dict) and "input_tokens" in body:
        body["input_tokens"] += 7
    return body


@defect(
    "messages.calls-as-text",
    on="json",
    paths=HERE,
    catches=["messages.call.block", "messages.call.no-markup"],
)
def calls_as_text(body: Any, exchange: Exchange) -> Any:
    """Calls appear as text, in the markup of the model."""
    del exchange
    if _message(body):
        for block in body["content"]:
            if block.get("type") == "tool_use":
                name = block["name"]
                block.clear()
                block |= {"type": "text", "text": f"<tool_call>{name}</tool_call>"}
    return body


@defect("messages.input-as-text", on="json", paths=HERE, catches=["messages.call.input", "messages.schema"])
def input_as_text(body: Any, exchange: Exchange) -> Any:
    """The input of a call is JSON in a text instead of an object."""
    del exchange
    if _message(body):
        for block in body["content"]:
            if block.get("type") == "tool_use":
                block["input"] = str(block["input"])
    return body


def _replies(name: str, summary: str, change: Callable[[Reply, Exchange], Reply], **facts: Any) -> None:
    add(name, summary, {"reply": only(HERE, change)}, area="messages", **facts)


def _agents(reply: Reply, exchange: Exchange) -> Reply:
    sent = str(exchange.body)
    if reply.status == 200 and (
        "'role': 'system'" in sent or "cache_control" in sent or "tool_result" in sent
    ):
        return Reply(
            400, b'{"error":{"message":"54 validation errors","type":"Bad Request","code":400}}', [JSON]
        )
    return reply


def _status(status: int, body: bytes | None = None) -> Callable[[Reply, Exchange], Reply]:
    def change(reply: Reply, exchange: Exchange) -> Reply:
        del exchange
        refused = 400 <= reply.status < 500
        return (
            Reply(status or reply.status, reply.body if body is None else body, reply.headers)
            if refused
            else reply
        )

    return change


def _no_count(reply: Reply, exchange: Exchange) -> Reply:
    return Reply(404, b'{"detail":"Not Found"}', [JSON]) if "count_tokens" in exchange.path else reply


def _plain(reply: Reply, exchange: Exchange) -> Reply:
    sent = _sent(exchange)
    if exchange.path == MESSAGES and sent.get("temperature") == 0 and "hundred" in str(sent.get("messages")):
        return Reply(503, b"", [])
    return reply


def _forced(reply: Reply, exchange: Exchange) -> Reply:
    return Reply(500, reply.body, reply.headers) if "tool_choice" in _sent(exchange) else reply


_replies(
    "messages.agents-refused",
    "What agents send is refused: a system turn among the messages, cache marks, results of tools.",
    _agents,
    faults=["MSG-001"],
    versions="0.11.1 to 0.22",
    catches=["messages.agent"],
)
_replies(
    "messages.refusals-fail",
    "What should be refused breaks the server.",
    _status(500),
    catches=["messages.refused"],
)
_replies(
    "messages.refusals-bare",
    "A refusal is a bare text.",
    _status(0, b'{"error": "no"}'),
    catches=["messages.refused.envelope", "messages.refused.shape"],
)
_replies(
    "messages.count-missing",
    "Tokens cannot be counted: the route is not there.",
    _no_count,
    faults=["MSG-004"],
    catches=["messages.count.answered"],
)
_replies(
    "messages.unavailable", "Whole answers are refused as overload.", _plain, catches=["messages.answered"]
)
_replies(
    "messages.calls-fail",
    "A request that forces a call breaks the server.",
    _forced,
    catches=["messages.call.answered"],
)


def _key(reply: Reply, exchange: Exchange) -> Reply:
    if exchange.headers.get("x-api-key") or exchange.path == f"{MESSAGES}/count_tokens":
        return Reply(401, b'{"error": "Unauthorized"}', [JSON])
    return reply


_replies(
    "messages.x-api-key-refused",
    "The key is refused in the header in which Anthropic's clients send it, and on the route that counts.",
    _key,
    environ=[KEY],
    faults=["AUTH-008"],
    catches=["messages.x-api-key", "messages.count.answered"],
)


@defect(
    "messages.context-short",
    on="json",
    paths=("/v1/models",),
    area="profile",
    faults=["MSG-003"],
    catches=["profile.model.context-length", "messages.agent.context"],
    profile="sim-agents",
)
def context_short(body: Any, exchange: Exchange) -> Any:
    """The context is too short for agents."""
    del exchange
    for row in body.get("data", ()):
        row["max_model_len"] = 4096
    return body
