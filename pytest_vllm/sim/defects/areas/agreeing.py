"""Defects that show in no answer by itself: two ways to the same figures or calls differ."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import asks, in_body, in_choices
from pytest_vllm.sim.defects.edit import choices
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, MESSAGES, RESPONSES, only

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

BOTH = (CHAT, COMPLETIONS)
#: By how much too great every score is; tokens of a prompt behind which scores are their neighbours'.
DRIFT, LATE = 1.05, 500
#: Seconds for which a stream stands still.
STILL = 3.0
USAGE = re.compile(r"(?m)^(vllm:kv_cache_usage_perc\S*) \S+$")


def _drifted(choice: dict[str, Any]) -> None:
    for entry in (choice.get("logprobs") or {}).get("content") or ():
        for one in (entry, *(entry.get("top_logprobs") or ())):
            one["logprob"] *= DRIFT


def _chat_drift(body: Any, exchange: Exchange) -> Any:
    del exchange
    for choice in (body.get("choices") or ()) if isinstance(body, dict) else ():
        _drifted(choice)
    return body


def _chat_drift_streamed(events: list[Event], exchange: Exchange) -> list[Event]:
    del exchange
    for _, choice in choices(events):
        _drifted(choice)
    return events


add(
    "logprobs.chat-drift",
    "Every log probability of chat is five per cent too far from zero.",
    {"json": only((CHAT,), _chat_drift), "events": only((CHAT,), _chat_drift_streamed)},
    catches=["logprobs.routes.agree"],
)


def _late(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    if asked.get("echo") and choice.get("logprobs"):
        told = choice["logprobs"]["token_logprobs"]
        told[LATE + 1 :] = told[LATE:-1]


in_choices(
    "logprobs.late-shifted",
    "Behind five hundred tokens of a prompt each has the log probability of the one before it.",
    (COMPLETIONS,),
    _late,
    catches=["logprobs.read.deep"],
)


def _response_drift(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for item in body.get("output") or ():
        for part in item.get("content") or ():
            _drifted({"logprobs": {"content": part.get("logprobs")}})


in_body(
    "oracle.response-drift",
    "Every log probability of a response is five per cent too far from zero.",
    (RESPONSES,),
    _response_drift,
    catches=["oracle.same.scores"],
)


@defect("logprobs.streamed-own", on="events", paths=(COMPLETIONS,), catches=["logprobs.every.own"])
def streamed_own(events: list[Event], exchange: Exchange) -> list[Event]:
    """Streamed tokens have another log probability than as their own candidates."""
    del exchange
    for _, choice in choices(events):
        told = choice.get("logprobs") or {}
        told |= {"token_logprobs": [one and one - 0.2 for one in told["token_logprobs"]]} if told else {}
    return events


def _ranks(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for row in body.get("prompt_logprobs") or ():
        for entry in (row or {}).values():
            entry["rank"] = 1


in_body(
    "logprobs.chat-ranks",
    "Each candidate for a token of a chat's prompt has the first rank.",
    (CHAT,),
    _ranks,
    catches=["logprobs.every.ranks"],
)


def _lacks(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    if asked.get("echo") and choice.get("prompt_logprobs"):
        del choice["prompt_logprobs"][1]


in_choices(
    "logprobs.prompt-lacks",
    "An echoed prompt has no entry for its second token.",
    (COMPLETIONS,),
    _lacks,
    catches=["logprobs.every.prompt"],
)


@defect(
    "stream.stands-still", on="events", paths=(COMPLETIONS,), area="streaming", catches=["stream.pace.flows"]
)
def stands_still(events: list[Event], exchange: Exchange) -> list[Event]:
    """Streams stand still for three seconds in their middle."""
    del exchange
    for event in events[len(events) // 2 :] if len(events) > 6 else ():
        event.when += STILL
    return events


def _first_input(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    uses = [block for block in body.get("content") or () if block.get("type") == "tool_use"]
    for use in uses[1:]:
        use["name"] = uses[0]["name"]


in_body(
    "messages.second-name",
    "Over Messages the second call of an answer goes by the first one's name.",
    (MESSAGES,),
    _first_input,
    catches=["messages.calls.like-chat"],
)


@defect("messages.second-streamed", on="events", paths=(MESSAGES,), catches=["messages.calls.streamed"])
def second_streamed(events: list[Event], exchange: Exchange) -> list[Event]:
    """Streams of Messages call one tool twice instead of two."""
    del exchange
    names: list[str] = []
    for event in events:
        block = event.data.get("content_block") if isinstance(event.data, dict) else None
        if block and block.get("type") == "tool_use":
            names.append(block["name"])
            block["name"] = names[0]
    return events


def _all_thought(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    usage = body.get("usage") or {}
    if usage.get("output_tokens_details"):
        usage["output_tokens_details"]["reasoning_tokens"] = usage["output_tokens"]


in_body(
    "usage.all-thought",
    "Over Responses every token counts as reasoning.",
    (RESPONSES,),
    _all_thought,
    catches=["usage.every.thought"],
)


@defect("metrics.cache-stuck", on="metrics", catches=["metrics.gauges.busy"])
def cache_stuck(text: str, engine: Any) -> str:
    """The cache's usage stays at nothing, whatever runs."""
    del engine
    return USAGE.sub(r"\1 0.0", text)


def _one_code(body: dict[str, Any], asked: dict[str, Any]) -> None:
    rows = body.get("data") or []
    if len(rows) > 2 and asked.get("encoding_format") == "base64":
        rows[-1]["embedding"] = rows[0]["embedding"]


in_body(
    "embeddings.base64-first",
    "As base64 the last vector of a batch is the first one again.",
    ("/v1/embeddings",),
    _one_code,
    profile="sim-embed",
    catches=["embeddings.base64.batch"],
)


def _one_pooled(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for row in (body.get("data") or [])[1:]:
        row["data"] = body["data"][0]["data"]


in_body(
    "embeddings.pooled-first",
    "`/pooling` gives every text of a batch the numbers of the first.",
    ("/pooling",),
    _one_pooled,
    profile="sim-embed",
    catches=["embeddings.pooled.same"],
)


@defect(
    "completions.against-ignored", on="body", paths=(COMPLETIONS,), catches=["completions.logit-bias.against"]
)
def against_ignored(body: Any, path: str) -> Any:
    """A bias against a token is ignored, one for it is not."""
    del path
    biases = body.get("logit_bias") if isinstance(body, dict) else None
    if not isinstance(biases, dict) or not asks("allowed_token_ids")(body):
        return body
    kept = {token: bias for token, bias in biases.items() if not -100 <= bias < 0}
    return {**body, "logit_bias": kept}


@defect("stream.seed-lost", on="body", paths=(CHAT,), area="streaming", catches=["stream.parity.seeded"])
def seed_lost(body: Any, path: str) -> Any:
    """A seed is ignored in streams of chat."""
    del path
    streams = isinstance(body, dict) and body.get("stream")
    return {name: value for name, value in body.items() if name != "seed"} if streams else body


@defect("crowd.first-alone", on="body", paths=(COMPLETIONS,), catches=["crowd.alone"])
def first_alone(body: Any, path: str) -> Any:
    """Of several tokens that stop an answer the first alone does."""
    del path
    found = body.get("stop_token_ids") if isinstance(body, dict) else None
    return {**body, "stop_token_ids": found[:1]} if isinstance(found, list) else body
