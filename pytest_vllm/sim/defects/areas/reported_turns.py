"""Faults of public reports that show where a budget ends, a turn says nothing, objects come at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import (
    asked,
    deltas,
    joined,
    messages,
    offered,
    spread,
    threads,
    turns,
    whole_calls,
)
from pytest_vllm.sim.defects.choose import asks, failure, in_body, refused, shaped
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, MESSAGES, RESPONSES, only

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange, Reply

Json = dict[str, Any]
END = "</think>"
#: Tokens below which an answer is cut within its reasoning.
CUT = 16


def _tagged(text: str) -> str:
    at = len(text) // 2
    return f"{text[:at]}{END}{text[at:]}"


def _budgeted(exchange: Exchange) -> bool:
    return bool(asked(exchange, "thinking_token_budget") and offered(exchange.body))


def _in_calls(body: Any, exchange: Exchange) -> Any:
    for call in whole_calls(body) if _budgeted(exchange) else ():
        call["function"]["arguments"] = _tagged(call["function"]["arguments"])
    return body


def _in_streamed_calls(events: list[Event], exchange: Exchange) -> list[Event]:
    for parts in threads(events).values() if _budgeted(exchange) else ():
        spread(parts, _tagged(joined(parts)))
    return events


add(
    "reasoning.budget-ends-in-call",
    "A budget for reasoning ends it in the middle of a call's arguments.",
    {"json": only((CHAT,), _in_calls), "events": only((CHAT,), _in_streamed_calls)},
    faults=["vllm-project/vllm#44676"],
    catches=["reasoning.budget.call"],
)


def _thinks_on(body: Json, given: Json) -> None:
    for _, message in messages(body) if given.get("ignore_eos") else ():
        message["content"] = None


in_body(
    "reasoning.budget-begins-again",
    "Behind its budget the model thinks again, and an answer that may not end says nothing.",
    (CHAT,),
    _thinks_on,
    asks("thinking_token_budget"),
    faults=["vllm-project/vllm#43757"],
    catches=["reasoning.budget.answered"],
)


@defect(
    "reasoning.trapped-after-result",
    on="events",
    paths=(CHAT,),
    faults=["vllm-project/vllm#49717"],
    catches=["reasoning.result.answered-stream"],
)
def trapped_after_result(events: list[Event], exchange: Exchange) -> list[Event]:
    """After a tool's result the text of a stream that thinks comes as reasoning."""
    after = any(turn.get("role") == "tool" for turn in turns(exchange.body))
    if after and any(delta.get("reasoning") for _, _, delta in deltas(events)):
        for _, _, delta in deltas(events):
            if delta.get("content"):
                delta["reasoning"] = delta.pop("content")
    return events


def _cut_within(given: Json) -> bool:
    return isinstance(given.get("tool_choice"), dict) and (given.get("max_tokens") or CUT) < CUT


def _emptied(reply: Reply, exchange: Exchange) -> Reply:
    given = exchange.body if isinstance(exchange.body, dict) else {}
    thinks = "true" in json.dumps(given.get("chat_template_kwargs"))
    if reply.status == 200 and thinks and _cut_within(given):
        reply.status, reply.body = 500, failure("AssertionError")
    return reply


add(
    "reasoning.forced-cut-breaks",
    "A demanded call that is cut within its reasoning ends in a server error.",
    {"reply": only((CHAT,), _emptied)},
    faults=["vllm-project/vllm#40528"],
    catches=["reasoning.tool.cut"],
)
refused(
    "structured.end-rejected",
    "A form over chat ends in a server error once it is complete.",
    (CHAT,),
    500,
    failure("Internal server error"),
    shaped,
    faults=["vllm-project/vllm#51693"],
    catches=["structured.answered"],
)


def _corrupted(body: Json, given: Json) -> None:
    several = (given.get("response_format") or {}).get("type") == "json_object"
    for choice in body["choices"][1:] if several else ():
        choice["text"] = '{"ok": {{' + choice["text"][4:]


in_body(
    "structured.objects-corrupted",
    "Of several JSON objects that are written at once all but the first are corrupted.",
    (COMPLETIONS,),
    _corrupted,
    faults=["vllm-project/vllm#19493"],
    catches=["structured.crowd.objects"],
)


@defect(
    "messages.stop-not-named",
    on="json",
    paths=(MESSAGES,),
    faults=["vllm-project/vllm#48273"],
    catches=["messages.stop.sequence", "oracle.same.end"],
)
def stop_not_named(body: Any, exchange: Exchange) -> Any:
    """What a stop sequence ended is told as an end of its own."""
    del exchange
    if isinstance(body, dict) and body.get("stop_reason") == "stop_sequence":
        body["stop_reason"], body["stop_sequence"] = "end_turn", None
    return body


def _silent(given: Json) -> bool:
    said = [turn.get("content") for turn in turns(given) if turn.get("role") == "assistant"]
    return any(
        isinstance(blocks, list) and not any(block.get("type") == "text" for block in blocks)
        for blocks in said
    )


refused(
    "messages.silent-turn-refused",
    "A turn of the assistant that holds a call and no words is refused.",
    (MESSAGES,),
    400,
    b'{"type":"error","error":{"type":"invalid_request_error","message":"Invalid assistant message"}}',
    _silent,
    faults=["vllm-project/vllm#38738"],
    catches=["messages.agent"],
)


def _said_before(given: Json) -> list[Json]:
    items = given.get("input")
    rows = items if isinstance(items, list) else []
    return [row for row in rows if isinstance(row, dict) and row.get("role") == "assistant"]


def _loose(reply: Reply, exchange: Exchange) -> Reply:
    said = _said_before(exchange.body) if isinstance(exchange.body, dict) else []
    if any(turn.get("content") == [] for turn in said):
        reply.status, reply.body = 500, failure("list index out of range")
    elif any(turn.get("type") and "status" not in turn for turn in said):
        reply.status, reply.body = 400, failure("Field required: status", 400)
    return reply


add(
    "responses.loose-turns-break",
    "A turn of the assistant without a part ends in a server error, one without a status is refused.",
    {"reply": only((RESPONSES,), _loose)},
    faults=["vllm-project/vllm#45273", "openai/codex#12669"],
    catches=["responses.input.loose-survived", "responses.input.loose"],
)
refused(
    "ranking.long-query-breaks",
    "A long question ends in a server error.",
    ("/rerank",),
    500,
    failure("The size of tensor a must match the size of tensor b"),
    lambda given: len(str(given.get("query") or "")) > 1000,
    profile="sim-rerank",
    faults=["vllm-project/vllm#24737"],
    catches=["ranking.answered"],
)
