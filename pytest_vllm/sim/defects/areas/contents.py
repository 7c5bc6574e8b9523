"""Defects of what routes make of long contents: parts that are lost, characters that are turned."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import in_body
from pytest_vllm.sim.defects.make import spoil, spoil_events, without_events
from pytest_vllm.sim.defects.registry import defect
from pytest_vllm.sim.defects.scope import MESSAGES, RESPONSES

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

Json = dict[str, Any]
STORED = "VLLM_ENABLE_RESPONSES_API_STORE=1"
HEARD = ("/v1/audio/transcriptions",)
EMBED: Json = {"profile": "sim-embed"}
HEARS: Json = {"profile": "sim-transcribe"}


def _marked(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


spoil(
    "messages.text-escaped",
    "Marks of HTML are escaped in the text of whole messages.",
    (MESSAGES,),
    "content.*.text",
    _marked,
    catches=["messages.text.lines"],
)
without_events(
    "messages.breaks-lost",
    "Deltas that hold nothing but line breaks are lost.",
    (MESSAGES,),
    lambda event: isinstance(event.data, dict) and not _delta(event).get("text", "x").strip("\n"),
    catches=["messages.stream.lines"],
)
spoil_events(
    "messages.start-off",
    "A stream begins with another number of prompt tokens than it ends with.",
    (MESSAGES,),
    "message.usage.input_tokens",
    lambda count: count + 3,
    catches=["messages.stream.usage-kept"],
)


def _delta(event: Event) -> Json:
    return event.data.get("delta") or {}


@defect("messages.results-first", on="body", paths=(MESSAGES,), catches=["messages.input.several"])
def results_first(body: Any, path: str) -> Any:
    """Of a tool's result in several parts only the first reaches the model."""
    del path
    body = copy.deepcopy(body)
    for turn in body.get("messages") or () if isinstance(body, dict) else ():
        for block in (
            turn["content"] if isinstance(turn, dict) and isinstance(turn.get("content"), list) else ()
        ):
            if isinstance(block, dict) and isinstance(block.get("content"), list):
                block["content"] = block["content"][:1]
    return body


@defect("messages.cached-never", on="json", paths=(MESSAGES,), area="cache", catches=["cache.every.routes"])
def cached_never(body: Any, exchange: Exchange) -> Any:
    """Whole messages never tell that anything of their prompt was cached."""
    del exchange
    usage = body.get("usage") or {}
    if usage.get("cache_read_input_tokens"):
        usage["input_tokens"] += usage["cache_read_input_tokens"]
        usage["cache_read_input_tokens"] = 0
    return body


spoil(
    "responses.breaks-turned",
    "Line breaks of whole responses come as those of Windows.",
    (RESPONSES,),
    "output.*.content.*.text",
    lambda text: text.replace("\n", "\r\n"),
    catches=["responses.text.lines"],
)


@defect("responses.done-cut", on="events", paths=(RESPONSES,), catches=["responses.stream.text-kept"])
def done_cut(events: list[Event], exchange: Exchange) -> list[Event]:
    """The event that holds all of a text lacks its last letter."""
    del exchange
    for event in events:
        if isinstance(event.data, dict) and event.data.get("type") == "response.output_text.done":
            event.data["text"] = event.data["text"][:-1]
    return events


spoil_events(
    "responses.purpose-lost",
    "Responses that are streamed have no metadata.",
    (RESPONSES,),
    "response.metadata",
    None,
    catches=["responses.told.purpose"],
)


@defect("responses.said-first", on="body", paths=(RESPONSES,), catches=["responses.input.said-in-parts"])
def said_first(body: Any, path: str) -> Any:
    """Of what the model said in several parts only the first comes back to it."""
    del path
    body = copy.deepcopy(body)
    given = body.get("input") if isinstance(body, dict) else None
    for item in given if isinstance(given, list) else ():
        if (
            isinstance(item, dict)
            and item.get("role") == "assistant"
            and isinstance(item.get("content"), list)
        ):
            item["content"] = item["content"][:1]
    return body


@defect("responses.results-cut", on="body", paths=(RESPONSES,), catches=["responses.input.several"])
def results_cut(body: Any, path: str) -> Any:
    """Of a tool's result 200 characters reach the model."""
    del path
    body = copy.deepcopy(body)
    given = body.get("input") if isinstance(body, dict) else None
    for item in given if isinstance(given, list) else ():
        if isinstance(item, dict) and isinstance(item.get("output"), str):
            item["output"] = item["output"][:200]
    return body


@defect(
    "responses.untold-after",
    on="body",
    paths=(RESPONSES,),
    environ=[STORED],
    catches=["responses.state.instructed"],
)
def untold_after(body: Any, path: str) -> Any:
    """A response that goes on from another one has no instructions."""
    del path
    if isinstance(body, dict) and body.get("previous_response_id"):
        return {name: value for name, value in body.items() if name != "instructions"}
    return body


def _unmarked(body: Json, asked: Json) -> None:
    del asked
    if isinstance(body.get("prompt"), str):
        body["prompt"] = re.sub(r"<\|[^|]*\|>", "", body["prompt"])


in_body(
    "tokenize.marks-lost",
    "Special tokens are left out of what tokens are turned back to.",
    ("/detokenize",),
    _unmarked,
    catches=["tokenize.chat.marks"],
)
spoil(
    "tokenize.lead-lost",
    "A text comes back without the blanks that it begins with.",
    ("/detokenize",),
    "prompt",
    lambda text: text.lstrip(" "),
    catches=["tokenize.round-trip"],
)


@defect(
    "ranking.left-first",
    on="body",
    paths=("/v1/score",),
    profile="sim-rerank",
    catches=["ranking.pairs-unlike"],
)
def left_first(body: Any, path: str) -> Any:
    """Pairs are scored with the text on the left of the first one."""
    del path
    left = body.get("text_1") if isinstance(body, dict) else None
    return {**body, "text_1": [left[0]] * len(left)} if isinstance(left, list) and left else body


def _rounded(values: Any) -> Any:
    return [round(value, 2) for value in values] if isinstance(values, list) else values


spoil(
    "embeddings.rounded",
    "Vectors are rounded to two digits.",
    ("/v1/embeddings",),
    "data.*.embedding",
    _rounded,
    catches=["embeddings.every.precise"],
    **EMBED,
)
spoil(
    "embeddings.pooled-longer",
    "`/pooling` gives vectors that are not normalised.",
    ("/pooling",),
    "data.*.data",
    lambda values: [value * 2 for value in values] if isinstance(values, list) else values,
    catches=["embeddings.pooled.length"],
    **EMBED,
)
spoil(
    "transcription.language-other",
    "The language that is told is another one.",
    HEARD,
    "language",
    "Welsh",
    catches=["transcription.language"],
    **HEARS,
)


@defect("transcription.times-later", on="json", paths=HEARD, catches=["transcription.times.begin"], **HEARS)
def times_later(body: Any, exchange: Exchange) -> Any:
    """Every segment is told half a minute late."""
    del exchange
    for part in body.get("segments") or () if isinstance(body, dict) else ():
        part["start"], part["end"] = part["start"] + 30, part["end"] + 30
    return body


spoil(
    "transcription.break-behind",
    "A whole text ends with a line break.",
    HEARD,
    "text",
    lambda text: f"{text}\n",
    catches=["transcription.text-ends"],
    **HEARS,
)


@defect("messages.stops-first", on="body", paths=(MESSAGES,), catches=["messages.stop.each"])
def stops_first(body: Any, path: str) -> Any:
    """Of several stop sequences only the first is used."""
    del path
    stops = body.get("stop_sequences") if isinstance(body, dict) else None
    return {**body, "stop_sequences": stops[:1]} if isinstance(stops, list) else body


@defect("messages.forbidden-called", on="body", paths=(MESSAGES,), catches=["messages.call.forbidden"])
def forbidden_called(body: Any, path: str) -> Any:
    """Tools that may not be called are called as if they might."""
    del path
    choice = body.get("tool_choice") if isinstance(body, dict) else None
    forbidden = isinstance(choice, dict) and choice.get("type") == "none"
    return {**body, "tool_choice": {"type": "auto"}} if forbidden else body


@defect("responses.system-lost", on="body", paths=(RESPONSES,), catches=["responses.input.system-item"])
def system_lost(body: Any, path: str) -> Any:
    """System messages among the items never reach the model."""
    del path
    given = body.get("input") if isinstance(body, dict) else None
    kept = (
        [one for one in given if not (isinstance(one, dict) and one.get("role") == "system")]
        if isinstance(given, list)
        else given
    )
    return {**body, "input": kept} if kept else body
