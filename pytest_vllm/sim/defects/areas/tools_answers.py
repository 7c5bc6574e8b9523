"""Defects of tool calls: calls that the parser misses, markup that it leaves, text that it takes away."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import (
    BOTH,
    HERE,
    STREAM,
    WHOLE,
    asked,
    both,
    deltas,
    finished,
    joined,
    messages,
    threads,
    told,
    turns,
    uncalled,
)
from pytest_vllm.sim.defects.registry import defect

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

    Writing = Callable[[str, str], str]

DSML = "<\uff5cDSML\uff5c"


def hermes(name: str, text: str) -> str:
    """A call as Hermes and Qwen models write it."""
    return f'<tool_call>\n{{"name": "{name}", "arguments": {text}}}\n</tool_call>'


def as_text(
    name: str,
    summary: str,
    writing: Writing,
    field: str = "content",
    points: tuple[str, ...] = BOTH,
    **facts: Any,
) -> None:
    """The calls are not parsed: what the model wrote is in the text or in the thoughts."""

    def whole(body: Any, exchange: Exchange) -> Any:
        del exchange
        for choice, message in messages(body):
            calls = [call["function"] for call in message.pop("tool_calls", None) or ()]
            if calls:
                written = "\n".join(writing(call["name"], call["arguments"]) for call in calls)
                message[field] = f"{message.get(field) or ''}{written}"
                choice["finish_reason"] = "stop"
        return body

    def stream(events: list[Event], exchange: Exchange) -> list[Event]:
        del exchange
        calls = [
            (parts[0]["function"].get("name") or "", joined(parts)) for parts in threads(events).values()
        ]
        if not calls:
            return events
        text = "\n".join(writing(*call) for call in calls)
        bare = finished(uncalled(events), lambda reason: "stop" if reason == "tool_calls" else reason)
        return told(bare, field, text, last=True)

    both(name, summary, whole, stream, points, area="tools", **facts)


as_text(
    "tools.calls-as-text",
    "Calls are not parsed: their markup is the content.",
    hermes,
    faults=["TOOL-017", "TOOL-060", "TOOL-049", "TOOL-091"],
    catches=["tools.forced.called", "tools.markup.unread"],
)
as_text(
    "tools.stream-calls-as-text",
    "Streamed calls are not parsed: their markup is the content.",
    lambda name, text: f"[TOOL_CALLS]{name}{text}",
    points=STREAM,
    faults=["TOOL-032", "TOOL-041", "TOOL-047", "TOOL-048", "TOOL-072"],
    versions="0.7 to 0.21, per parser",
    catches=["tools.forced.called-stream", "tools.auto.parity"],
)
as_text(
    "tools.prose-hides-calls",
    "A call in Python's form is not parsed.",
    lambda name, text: f"[{name}({', '.join(f'{k}={v!r}' for k, v in json.loads(text).items())})]",
    points=WHOLE,
    faults=["TOOL-058"],
    versions="0.10.0",
    catches=["tools.forced.called", "tools.markup.unread"],
)
as_text(
    "tools.calls-in-thoughts",
    "Calls that come before the thoughts are closed stay in the reasoning.",
    hermes,
    "reasoning",
    faults=["TOOL-034", "TOOL-070"],
    versions="0.19",
    catches=["tools.markup.thoughts"],
)


@defect(
    "tools.stream-without-calls",
    on="events",
    paths=HERE,
    faults=["TOOL-013", "TOOL-093"],
    catches=["tools.forced.called-stream", "tools.auto.parity"],
)
def stream_without_calls(events: list[Event], exchange: Exchange) -> list[Event]:
    """Streams never carry calls, and end with `stop`."""
    del exchange
    if not threads(events):
        return events
    return finished(uncalled(events), lambda reason: "stop" if reason == "tool_calls" else reason)


def _silent(body: Any, exchange: Exchange) -> Any:
    if asked(exchange, "tool_choice") == "auto":
        for choice, message in messages(body):
            message.pop("tool_calls", None)
            message["content"], choice["finish_reason"] = None, "stop"
    return body


def _silent_stream(events: list[Event], exchange: Exchange) -> list[Event]:
    if asked(exchange, "tool_choice") != "auto":
        return events
    bare = uncalled(events)
    for _, _, delta in deltas(bare):
        delta.pop("content", None)
    return finished(bare, lambda _: "stop")


both(
    "tools.silent",
    "Where tools are offered, answers hold neither text nor call, and end with `stop`.",
    _silent,
    _silent_stream,
    area="tools",
    faults=["TOOL-069"],
    catches=["tools.auto.silent"],
)
both(
    "tools.stream-silent",
    "Where tools are offered, streams stop saying anything while tokens are generated.",
    _silent,
    _silent_stream,
    STREAM,
    area="tools",
    faults=["TOOL-039", "TOOL-062"],
    versions="0.18",
    catches=["tools.auto.silent", "tools.auto.parity"],
)


def _left(text: str, body: Any, exchange: Exchange) -> Any:
    del exchange
    for _, message in messages(body):
        if message.get("tool_calls"):
            message["content"] = f"{message.get('content') or ''}{text}"
    return body


def _left_stream(text: str, events: list[Event], exchange: Exchange) -> list[Event]:
    del exchange
    return told(events, "content", text) if threads(events) else events


def leaves(name: str, summary: str, text: str, points: tuple[str, ...] = BOTH, **facts: Any) -> None:
    """A piece of markup stays in the content beside calls."""
    both(name, summary, partial(_left, text), partial(_left_stream, text), points, area="tools", **facts)


leaves(
    "tools.opener-left",
    "The marker that opens a call is left in the content.",
    "<tool_call>",
    catches=["tools.markup.forced", "tools.markup.auto"],
)
leaves(
    "tools.answer-tag-left",
    "A closing tag is left in the content of streams.",
    "</answer>",
    STREAM,
    faults=["TOOL-057"],
    catches=["tools.markup.forced", "tools.markup.auto", "tools.forced.content-parity"],
)
leaves(
    "tools.fragments-left",
    "Fragments of markers are left in the content of streams.",
    DSML,
    STREAM,
    faults=["TOOL-065"],
    catches=["tools.markup.forced", "tools.markup.auto"],
)
leaves(
    "tools.blank-before-call",
    "In streams a piece of white space comes before every call.",
    "\n\n",
    STREAM,
    faults=["TOOL-094"],
    catches=["tools.forced.content-parity"],
)
leaves(
    "tools.prose-beside-forced",
    "Beside every call there is text that the model did not write.",
    "I will call a function.",
    catches=["tools.forced.wordless", "tools.words.parity"],
)


@defect("tools.words-lost", on="events", paths=HERE, catches=["tools.words.parity"])
def words_lost(events: list[Event], exchange: Exchange) -> list[Event]:
    """The text before a call is missing in streams."""
    del exchange
    if threads(events):
        for _, _, delta in deltas(events):
            if delta.get("content") and not delta.get("role"):
                delta.pop("content")
    return events


@defect("tools.whole-words-lost", on="json", paths=HERE, catches=["tools.words.kept", "tools.words.parity"])
def whole_words_lost(body: Any, exchange: Exchange) -> Any:
    """The text before a call is missing in whole answers."""
    del exchange
    for _, message in messages(body):
        if message.get("tool_calls"):
            message["content"] = None
    return body


def _cut(body: Any, exchange: Exchange) -> Any:
    if not asked(exchange, "tools"):
        return body
    for choice, message in messages(body):
        if choice["finish_reason"] == "length":
            message.pop("tool_calls", None)
            message["content"] = '<tool_call>\n{"name": "get'
    return body


def _cut_stream(events: list[Event], exchange: Exchange) -> list[Event]:
    if not asked(exchange, "tools") or not any(event.finish == "length" for event in events):
        return events
    return told(events, "content", "<tool_ca")


both(
    "tools.cut-markup",
    "The markup of a call that the limit of tokens cuts is the content.",
    _cut,
    _cut_stream,
    WHOLE,
    area="tools",
    faults=["TOOL-088"],
    catches=["tools.cut.markup"],
)
both(
    "tools.cut-opener",
    "The marker of a call that the limit of tokens cuts is the content in streams.",
    _cut,
    _cut_stream,
    STREAM,
    area="tools",
    faults=["TOOL-089"],
    catches=["tools.cut.markup-stream"],
)


def _result(body: Any, exchange: Exchange) -> Any:
    if any(turn.get("role") == "tool" for turn in turns(exchange.body)[-1:]):
        for _, message in messages(body):
            message["content"] = f"<|channel|>commentary<|message|>{message.get('content') or ''}<|end|>"
    return body


both(
    "tools.result-harmony",
    "The answer that follows a tool's result holds the markup of channels.",
    _result,
    _cut_stream,
    WHOLE,
    area="tools",
    faults=["TOOL-027"],
    catches=["tools.markup.result"],
)
