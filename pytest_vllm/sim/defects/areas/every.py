"""Defects that show in a few answers of a run, beside others of their kind that are right."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import asks, in_body, in_choices
from pytest_vllm.sim.defects.edit import choices, set_text, text_of
from pytest_vllm.sim.defects.registry import defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, MESSAGES, RESPONSES

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

Json = dict[str, Any]
BOTH = (CHAT, COMPLETIONS)
#: Candidates from which on their order is wrong; tokens of a block.
MANY, BLOCK = 5, 16
SUM = re.compile(r"(?m)^(vllm:time_to_first_token_seconds_sum\S* )(\S+)$")
COUNTED = re.compile(r"(?m)^vllm:generation_tokens_total\S* (\S+)$")


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
    catches=["structured.every.kept"],
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


@defect("oracle.choice-lost", on="events", paths=(CHAT,), catches=["oracle.choices.all"])
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


@defect("metrics.sum-dips", on="metrics", catches=["metrics.every.grows"])
def sum_dips(text: str, engine: Any) -> str:
    """The sum of the times to the first token is halved in every other scrape."""
    del engine
    counted = COUNTED.search(text)
    if counted is None or int(float(counted[1])) % 2:
        return text
    return SUM.sub(lambda found: f"{found[1]}{json.dumps(float(found[2]) / 2)}", text)
