"""Defects of numbers and ids that belong to another part of an answer, and of what streams leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import call_deltas, turns
from pytest_vllm.sim.defects.choose import in_body, in_choices
from pytest_vllm.sim.defects.edit import choices, set_text, text_of
from pytest_vllm.sim.defects.make import ignores, metric, spoil
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, MESSAGES, RESPONSES, only

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange, Reply

Json = dict[str, Any]
#: The number of the third.
THIRD = 2
#: Messages of a conversation that are read.
READ = 20
#: Tokens of a long prompt that are listed.
LISTED = 500


def _streams_ignore(name: str, summary: str, path: str, *fields: str, **facts: Any) -> None:
    """Streams of a route are answered as if some fields had not been sent."""

    def ignoring(body: Any, path: str) -> Any:
        del path
        streams = isinstance(body, dict) and body.get("stream")
        return {key: value for key, value in body.items() if key not in fields} if streams else body

    add(name, summary, {"body": only((path,), ignoring)}, **facts)


_streams_ignore(
    "oracle.stream-allows-all",
    "Chat streams take any token, whichever are allowed.",
    CHAT,
    "allowed_token_ids",
    catches=["oracle.kept.tokens"],
)
_streams_ignore(
    "oracle.stream-ends-early",
    "Streams may end before their least number of tokens.",
    COMPLETIONS,
    "min_tokens",
    catches=["oracle.kept.least"],
)
_streams_ignore(
    "oracle.stream-draws",
    "Streams draw from all tokens where one alone is likely enough.",
    COMPLETIONS,
    "min_p",
    catches=["oracle.same.text"],
)
_streams_ignore(
    "oracle.stream-uninstructed",
    "Streams of responses leave the instructions out of the prompt.",
    RESPONSES,
    "instructions",
    catches=["oracle.same.prompt"],
)


@defect("oracle.stream-cut-refused", on="body", paths=(COMPLETIONS,), catches=["oracle.streamed"])
def stream_cut_refused(body: Any, path: str) -> Any:
    """A stream of a prompt that is to be cut is refused."""
    del path
    if isinstance(body, dict) and body.get("stream") and body.get("truncate_prompt_tokens"):
        return {**body, "truncate_prompt_tokens": -READ}
    return body


@defect("oracle.stream-takes-worse", on="events", paths=(COMPLETIONS,), catches=["oracle.kept.best"])
def stream_takes_worse(events: list[Event], exchange: Exchange) -> list[Event]:
    """Streams take a token that is not the likeliest where no other may be drawn."""
    narrow = isinstance(exchange.body, dict) and exchange.body.get("top_p") == 1e-6
    for _, choice in choices(events) if narrow else ():
        for token, tops in zip(*_listed(choice), strict=False):
            others = [text for text in tops if text != token]
            if others and token in tops:
                tops[others[0]] = tops[token] + 0.5
    return events


def _listed(choice: Json) -> tuple[list[str], list[dict[str, float]]]:
    told = choice.get("logprobs") or {}
    return told.get("tokens") or [], told.get("top_logprobs") or []


@defect("tools.third-as-second", on="events", paths=(CHAT,), catches=["tools.every.numbered"])
def third_as_second(events: list[Event], exchange: Exchange) -> list[Event]:
    """The third call of a stream has the number of the second."""
    del exchange
    for _, part in call_deltas(events):
        part["index"] = THIRD - 1 if part["index"] == THIRD else part["index"]
    return events


def _third(key: str) -> Any:
    def moved(events: list[Event], exchange: Exchange) -> list[Event]:
        del exchange
        for event in events:
            if isinstance(event.data, dict) and event.data.get(key) == THIRD:
                event.data[key] = THIRD - 1
        return events

    return moved


add(
    "responses.third-as-second",
    "The third item of a stream has the number of the second.",
    {"events": only((RESPONSES,), _third("output_index"))},
    catches=["responses.every.numbered"],
)
add(
    "messages.third-as-second",
    "The third block of a stream has the number of the second.",
    {"events": only((MESSAGES,), _third("index"))},
    catches=["messages.every.numbered"],
)


def _one_id(body: Json, asked: Json) -> None:
    del asked
    for item in body.get("output") or ():
        if item["type"] == "function_call":
            item["call_id"] = item["id"]


in_body(
    "responses.call-id-of-item",
    "A call has the id of the item that holds it.",
    (RESPONSES,),
    _one_id,
    catches=["responses.every.call-ids"],
)


def _swapped(body: Json, asked: Json) -> None:
    del asked
    rows = body.get("choices") or []
    if len(rows) > 1 and rows[0].get("prompt_token_ids") and rows[-1].get("prompt_token_ids"):
        first, last = rows[0]["prompt_token_ids"], rows[-1]["prompt_token_ids"]
        rows[0]["prompt_token_ids"], rows[-1]["prompt_token_ids"] = last, first


in_body(
    "completions.prompts-swapped",
    "The first prompt of a batch is told with the ids of the last.",
    (COMPLETIONS,),
    _swapped,
    catches=["completions.every.prompt-ids"],
)


def _in_bytes(choice: Json, asked: Json) -> None:
    del asked
    told = choice.get("logprobs") or {}
    at = 0
    for place, token in enumerate(told.get("tokens") or ()):
        told["text_offset"][place] = at
        at += len(token.encode())


in_choices(
    "logprobs.offsets-in-bytes",
    "Tokens are told to begin where their bytes do.",
    (COMPLETIONS,),
    _in_bytes,
    catches=["logprobs.every.offsets"],
)


def _ascii_alone(choice: Json, asked: Json) -> None:
    del asked
    for entry in (choice.get("logprobs") or {}).get("content") or ():
        entry["bytes"] = entry["bytes"] if entry["token"].isascii() else None


in_choices(
    "logprobs.bytes-of-ascii",
    "Tokens beyond ASCII have no bytes.",
    (CHAT,),
    _ascii_alone,
    catches=["logprobs.every.bytes"],
)
metric(
    "metrics.usage-in-percent",
    "The cache's usage is told in percent.",
    "vllm:(?:kv|gpu)_cache_usage_perc",
    lambda value: value * 100,
    catches=["metrics.gauges.part"],
)
spoil(
    "classify.unlabelled",
    "No row has a label.",
    ("/classify",),
    "data.*.label",
    None,
    profile="sim-classify",
    catches=["classify.labels"],
)
ignores(
    "tokenize.any-model-back",
    "Tokens are turned into text for any model, whether it is served or not.",
    ("model",),
    ("/detokenize",),
    area="errors",
    catches=["errors.refused"],
)


@defect("security.refusals-hidden", on="reply", catches=["security.cross-origin.refused"])
def refusals_hidden(reply: Reply, exchange: Exchange) -> Reply:
    """Something in front lets any web page read answers, and not why it is refused."""
    if reply.status == 200 and exchange.headers.get("origin"):
        reply.headers = [*reply.headers, ("access-control-allow-origin", "*")]
    return reply


def _last_read(body: Any, path: str) -> Any:
    del path
    if len(turns(body)) > READ:
        body["messages"] = body["messages"][-READ:]
    return body


add(
    "tokenize.last-turns",
    "Of a long conversation the last twenty messages are read and counted.",
    {"body": only((CHAT, "/tokenize"), _last_read)},
    catches=["tokenize.every.held"],
)


@defect("messages.named-free", on="body", paths=(MESSAGES,), catches=["messages.call.named"])
def named_free(body: Any, path: str) -> Any:
    """A tool that is named need not be called."""
    del path
    if isinstance(body, dict) and isinstance(body.get("tool_choice"), dict):
        free = body["tool_choice"].get("type") == "tool"
        return {**body, "tool_choice": {"type": "auto"}} if free else body
    return body


def _reversed(body: Json, asked: Json) -> None:
    rows = body.get("choices") or []
    if isinstance(asked.get("prompt"), list) and len(rows) > READ:
        texts = [row["text"] for row in rows]
        for row, text in zip(rows, reversed(texts), strict=True):
            row["text"] = text


in_body(
    "completions.many-reversed",
    "The texts of more than twenty prompts come in reverse.",
    (COMPLETIONS,),
    _reversed,
    catches=["completions.every.echoed", "oracle.listed.joined"],
)


def _cut(body: Json, asked: Json) -> None:
    del asked
    body["tokens"] = body["tokens"][:LISTED] if isinstance(body.get("tokens"), list) else None


in_body(
    "tokenize.listed-in-part",
    "Of many tokens five hundred are listed, and all counted.",
    ("/tokenize",),
    _cut,
    catches=["tokenize.every.counted"],
)


@defect("oracle.latin-charset", on="reply", paths=(CHAT,), catches=["oracle.text.charset"])
def latin_charset(reply: Reply, exchange: Exchange) -> Reply:
    """Answers in UTF-8 are marked as Latin-1."""
    del exchange
    marked = ("content-type", "application/json; charset=iso-8859-1")
    reply.headers = [marked if name.lower() == "content-type" else (name, v) for name, v in reply.headers]
    return reply


def _repeated(choice: Json, asked: Json) -> None:
    first = (turns(asked) or [{}])[0]
    if first.get("role") == "system" and isinstance(first.get("content"), str):
        set_text(choice, f"{first['content']} {text_of(choice)}")


in_choices(
    "oracle.system-said",
    "Whole answers behind a system message begin with it.",
    (CHAT,),
    _repeated,
    catches=["oracle.same.text"],
)


def _ascii_stops(body: Any, path: str) -> Any:
    del path
    given = body.get("stop") if isinstance(body, dict) else None
    if isinstance(given, list):
        body["stop"] = [text for text in given if str(text).isascii()]
    return body


add(
    "oracle.stops-in-ascii",
    "A stop string beyond ASCII stops nothing.",
    {"body": only((COMPLETIONS,), _ascii_stops)},
    catches=["oracle.stop.hidden"],
)


def _eight(body: Any, path: str) -> Any:
    del path
    results = [turn for turn in turns(body) if turn.get("role") == "tool"]
    for turn in results[8:]:
        turn["content"] = ""
    return body


add(
    "tokenize.eight-results",
    "Of a conversation's tool results eight are read and counted.",
    {"body": only((CHAT, "/tokenize"), _eight)},
    catches=["tokenize.every.held"],
)
