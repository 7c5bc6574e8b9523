"""Defects that show in a few answers of a run, beside others of their kind that are right."""

from __future__ import annotations

import json
import re
from itertools import count
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import asks, in_body, in_choices
from pytest_vllm.sim.defects.edit import choices, set_text, text_of
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import (
    CHAT,
    COMPLETIONS,
    MESSAGES,
    MODELS,
    RESPONSES,
    live,
    only,
    remembering,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange, Reply

Json = dict[str, Any]
BOTH = (CHAT, COMPLETIONS)
#: Candidates from which on their order is wrong; tokens of a block.
MANY, BLOCK = 5, 16
#: Tokens of a long prompt, letters of a long form.
BIG, LETTERS = 300, 200
SUM = re.compile(r"(?m)^(vllm:time_to_first_token_seconds_sum\S* )(\S+)$")


def _entries(choice: Json) -> list[Json]:
    return (choice.get("logprobs") or {}).get("content") or []


def _ascending(choice: Json, asked: Json) -> None:
    del asked
    for entry in _entries(choice):
        if len(entry["top_logprobs"]) > MANY:
            entry["top_logprobs"].reverse()


def _latin(choice: Json, asked: Json) -> None:
    del asked
    for entry in _entries(choice):
        entry["bytes"] = list(entry["token"].encode("latin-1", "replace"))


def _one_id(choice: Json, asked: Json) -> None:
    del asked
    calls = choice["message"].get("tool_calls") or []
    for call in calls[1:]:
        call["id"] = calls[0]["id"]


def _renamed(choice: Json, asked: Json) -> None:
    for call in choice["message"].get("tool_calls") or ():
        if asked.get("parallel_tool_calls") is not None:
            call["function"]["name"] += "_1"


def _as_list(body: Json, asked: Json) -> None:
    del asked
    for item in body.get("output") or ():
        if item["type"] == "function_call":
            item["arguments"] = f"[{item['arguments']}]"


def _cached_above(body: Json, asked: Json) -> None:
    del asked
    details = (body.get("usage") or {}).get("input_tokens_details") or {}
    if details.get("cached_tokens"):
        details["cached_tokens"] = (body["usage"]["input_tokens"] // BLOCK + 1) * BLOCK


def _blank_behind(choice: Json, asked: Json) -> None:
    if (asked.get("structured_outputs") or {}).get("choice") and asked.get("max_tokens") != 1:
        set_text(choice, text_of(choice) + " ")


def _ends_itself(body: Json, asked: Json) -> None:
    if asked.get("system") and body.get("stop_reason") == "max_tokens":
        body["stop_reason"] = "end_turn"


def _stop_shown(body: Json, asked: Json) -> None:
    if body.get("stop_reason") == "stop_sequence":
        body["content"][-1]["text"] += asked["stop_sequences"][0]


in_choices(
    "logprobs.many-ascending",
    "More than five candidates of a token come in ascending order.",
    (CHAT,),
    _ascending,
    catches=["logprobs.every.sorted"],
)
in_choices(
    "logprobs.bytes-latin",
    "The bytes of tokens are in Latin-1: right in English, wrong in any other language.",
    (CHAT,),
    _latin,
    catches=["logprobs.every.bytes"],
)
in_choices(
    "tools.parallel-one-id",
    "The calls of one answer share an id.",
    (CHAT,),
    _one_id,
    catches=["tools.every.ids"],
)
in_choices(
    "tools.forced-renamed",
    "Forced calls go by another name where parallel calls are allowed or forbidden.",
    (CHAT,),
    _renamed,
    asks("tool_choice"),
    catches=["tools.every.offered"],
)
in_body(
    "tools.response-list",
    "Over Responses the arguments of a call are put in a list.",
    (RESPONSES,),
    _as_list,
    asks("tool_choice"),
    area="responses",
    catches=["responses.call.arguments", "tools.every.arguments"],
)
in_body(
    "usage.response-cached-above",
    "Over Responses more tokens are cached than the prompt has, where any are.",
    (RESPONSES,),
    _cached_above,
    catches=["usage.every.part"],
)
in_choices(
    "structured.choice-blank",
    "A blank follows the word of a choice.",
    BOTH,
    _blank_behind,
    catches=["structured.every.kept", "crowd.alone"],
)
in_body(
    "oracle.message-ends-itself",
    "Messages with instructions never say that their limit ended them.",
    (MESSAGES,),
    _ends_itself,
    catches=["oracle.end.told"],
)
in_body(
    "messages.stop-shown",
    "Messages end with the string that was to stop them.",
    (MESSAGES,),
    _stop_shown,
    catches=["oracle.stop.hidden"],
)


@defect("logprobs.streamed-mass", on="events", paths=(CHAT,), catches=["logprobs.every.mass"])
def streamed_mass(events: list[Event], exchange: Exchange) -> list[Event]:
    """Streamed candidates are all about as likely as the first."""
    del exchange
    for _, choice in choices(events):
        for entry in _entries(choice):
            first, *others = entry["top_logprobs"] or [{}]
            for other in others:
                other["logprob"] = first["logprob"]
    return events


@defect("usage.running-late", on="events", paths=BOTH, catches=["usage.every.running"])
def running_late(events: list[Event], exchange: Exchange) -> list[Event]:
    """A usage that goes along with a stream counts nothing until the end."""
    del exchange
    told = [
        event.data["usage"] for event in events if isinstance(event.data, dict) and event.data.get("usage")
    ]
    for usage in told[:-1]:
        usage |= {"completion_tokens": 0, "total_tokens": usage["prompt_tokens"]}
    return events


@defect("cache.streamed-off", on="events", paths=BOTH, catches=["cache.every.blocks"])
def streamed_off(events: list[Event], exchange: Exchange) -> list[Event]:
    """Streams report three cached tokens less than were found."""
    del exchange
    for event in events:
        usage = event.data.get("usage") if isinstance(event.data, dict) else None
        details = (usage or {}).get("prompt_tokens_details") or {}
        if details.get("cached_tokens"):
            details["cached_tokens"] -= 3
    return events


@defect("oracle.choice-lost", on="events", paths=(CHAT,), catches=["oracle.choices.all", "pairs.answered"])
def choice_lost(events: list[Event], exchange: Exchange) -> list[Event]:
    """Of three and more streamed choices the last never comes."""
    many = (exchange.body or {}).get("n") or 1
    lost = many - 1 if many > 2 else -1
    return [event for event in events if lost not in {row["index"] for _, row in choices([event])}]


@defect("errors.code-as-text", on="json", paths=(COMPLETIONS,), catches=["errors.every.code"])
def code_as_text(body: Any, exchange: Exchange) -> Any:
    """Errors of completions have their code as a text."""
    del exchange
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body["error"]["code"] = str(body["error"].get("code"))
    return body


@defect("errors.silent", on="json", paths=(RESPONSES,), catches=["errors.every.words"])
def silent(body: Any, exchange: Exchange) -> Any:
    """Refusals of Responses say nothing."""
    del exchange
    if isinstance(body, dict) and isinstance(body.get("error"), dict) and "message" in body["error"]:
        body["error"]["message"] = ""
    return body


def _dips() -> Callable[[str, Any], str]:
    """Remembers how often the metrics were read."""
    read = count(1)

    def halved(text: str, engine: Any) -> str:
        del engine
        if next(read) % 3:
            return text
        return SUM.sub(lambda found: f"{found[1]}{json.dumps(float(found[2]) / 2)}", text)

    return halved


add(
    "metrics.sum-dips",
    "The sum of the times to the first token is halved in every third scrape.",
    {"metrics": remembering(_dips), "ready": live},
    catches=["metrics.every.grows"],
)


@defect("logprobs.streamed-offsets", on="events", paths=(COMPLETIONS,), catches=["logprobs.every.offsets"])
def streamed_offsets(events: list[Event], exchange: Exchange) -> list[Event]:
    """Streamed tokens are told to begin one letter behind their place."""
    del exchange
    for _, choice in choices(events):
        told = choice.get("logprobs") or {}
        told |= {"text_offset": [at + 1 for at in told.get("text_offset") or ()]} if told else {}
    return events


@defect(
    "embeddings.batch-first-billed",
    on="json",
    paths=("/v1/embeddings",),
    profile="sim-embed",
    catches=["embeddings.every.billed", "embeddings.usage.like-tokenize"],
)
def batch_first_billed(body: Any, exchange: Exchange) -> Any:
    """A batch of texts is billed as one of them."""
    given = (exchange.body or {}).get("input")
    if isinstance(body, dict) and body.get("usage") and isinstance(given, list) and isinstance(given[0], str):
        first = max(1, body["usage"]["prompt_tokens"] // len(given))
        body["usage"] |= {"prompt_tokens": first, "total_tokens": first}
    return body


@defect(
    "ranking.unbilled", on="json", paths=("/score",), profile="sim-rerank", catches=["ranking.every.billed"]
)
def unbilled(body: Any, exchange: Exchange) -> Any:
    """Scores are billed nothing."""
    del exchange
    if isinstance(body, dict) and body.get("usage"):
        body["usage"] |= {"prompt_tokens": 0, "total_tokens": 0}
    return body


@defect(
    "usage.streams-bill-less",
    on="events",
    paths=(CHAT, RESPONSES, MESSAGES),
    catches=[
        "sizes.streamed.agent",
        "sizes.streamed.messages",
        "sizes.streamed.prompt",
        "sizes.streamed.responses",
        "messages.stream.usage-kept",
    ],
)
def streams_bill_less(events: list[Event], exchange: Exchange) -> list[Event]:
    """Streams bill ten tokens less of prompts beyond three hundred."""
    del exchange
    for event in events:
        data = event.data if isinstance(event.data, dict) else {}
        for holder in (data, data.get("response") or {}, data.get("message") or {}):
            usage = holder.get("usage") or {}
            for name in ("prompt_tokens", "input_tokens", "cache_read_input_tokens"):
                if (usage.get(name) or 0) > BIG:
                    usage[name] -= 10
                    usage |= {"total_tokens": usage["total_tokens"] - 10} if "total_tokens" in usage else {}
    return events


@defect("sizes.form-cut", on="json", paths=(CHAT,), catches=["sizes.form"])
def form_cut(body: Any, exchange: Exchange) -> Any:
    """Forms of more than 200 letters lose their last one."""
    if isinstance(body, dict) and (exchange.body or {}).get("response_format"):
        for choice in body.get("choices") or ():
            text = text_of(choice)
            set_text(choice, text[:-1] if len(text) > LETTERS else text)
    return body


@defect("errors.message-untyped", on="json", paths=(MESSAGES,), catches=["errors.every.shape"])
def message_untyped(body: Any, exchange: Exchange) -> Any:
    """Errors of Messages do not say that they are errors."""
    del exchange
    if isinstance(body, dict) and body.get("type") == "error":
        del body["type"]
    return body


def _as_long(seconds: float, exchange: Exchange) -> float:
    """As late as ever: only a server that runs counts how often it was asked."""
    del exchange
    return seconds


def _twice() -> Callable[..., Any]:
    read = count(1)

    def spoiled(body: Any, exchange: Exchange) -> Any:
        del exchange
        if isinstance(body, dict) and body.get("data") and not next(read) % 3:
            body["data"].append(dict(body["data"][0]))
        return body

    return spoiled


add(
    "models.listed-twice",
    "Every third time the list of models names one twice.",
    {"json": only((MODELS,), remembering(_twice)), "late": _as_long},
    catches=["models.every.once"],
)


@defect(
    "health.untyped-talk", on="reply", paths=(CHAT,), catches=["answers.every.typed", "chat.content-type"]
)
def untyped_talk(reply: Reply, exchange: Exchange) -> Reply:
    """Answers to conversations of five turns and more are said to be plain text."""
    if len((exchange.body or {}).get("messages") or ()) >= MANY:
        others = [pair for pair in reply.headers if pair[0].lower() != "content-type"]
        reply.headers = [*others, ("content-type", "text/plain")]
    return reply


@defect(
    "ranking.many-unsorted",
    on="json",
    paths=("/rerank", "/v1/rerank", "/v2/rerank"),
    profile="sim-rerank",
    catches=["ranking.every.ranked"],
)
def many_unsorted(body: Any, exchange: Exchange) -> Any:
    """Rankings of more than ten documents are not sorted."""
    del exchange
    rows = body.get("results") or [] if isinstance(body, dict) else []
    if len(rows) > 2 * MANY:
        rows.reverse()
    return body
