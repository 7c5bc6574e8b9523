"""Defects of scripted answers: what becomes of calls, text and thoughts that are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import asked, call_deltas, deltas, messages, threads, told, whole_calls
from pytest_vllm.sim.defects.scripted import (
    arguments,
    drop_streamed_calls,
    reasons,
    scripted,
    streamed_thoughts,
    thoughts,
)

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

#: Tokens; most answers come in two events when this many are asked for in each.
_LONGEST = 400
_cut_whole, _cut_stream = arguments(lambda text: text[: max(2, len(text) * 3 // 4)])
scripted(
    "arguments-cut",
    "Streamed arguments end before their end.",
    stream=_cut_stream,
    faults=["TOOL-033"],
    catches=[
        "scripted.answer.stream",
        "scripted.answer.split",
        "scripted.answer.chunks",
        "scripted.answer.arguments-alike",
    ],
)
scripted(
    "whole-arguments-cut",
    "The arguments of whole answers end before their end.",
    whole=_cut_whole,
    catches=["scripted.answer.whole"],
)
scripted(
    "last-event-empty",
    "Calls that come in the event that ends a stream are lost.",  # vllm-project/vllm#48294
    stream=drop_streamed_calls,
    when=lambda exchange: (asked(exchange, "stream_interval") or 1) > _LONGEST,
    catches=["scripted.answer.once"],
)


def _ids(body: Any, exchange: Exchange) -> None:
    del exchange
    for call in whole_calls(body):
        call["id"] = "call_0"


def _without_index(events: list[Event], exchange: Exchange) -> list[Event]:
    del exchange
    for _, part in call_deltas(events):
        part["index"] = part["index"] + 1
    return events


def _named_again(events: list[Event], exchange: Exchange) -> list[Event]:
    del exchange
    for parts in threads(events).values():
        for part in parts[1:]:
            part["id"] = parts[0].get("id")
            part.setdefault("function", {})["name"] = parts[0]["function"]["name"]
    return events


scripted("ids-alike", "All calls have one id.", whole=_ids, catches=["scripted.answer.ids"])
scripted(
    "index-from-one",
    "The calls of a stream are counted from one.",
    stream=_without_index,
    faults=["TOOL-019"],
    catches=["scripted.answer.indices"],
)
scripted(
    "names-repeated",
    "Every delta of a call carries its name and its id.",
    stream=_named_again,
    catches=["scripted.answer.names-once"],
)


def _leak(body: Any, exchange: Exchange) -> None:
    del exchange
    for _, message in messages(body):
        if message.get("tool_calls"):
            message["content"] = (message.get("content") or "") + "</tool_call>"


scripted(
    "markup-leaks",
    "The end of a call's markup is part of the content.",
    whole=_leak,
    stream=lambda events, exchange: (
        told(events, "content", "</tool_call>", last=True) if exchange and threads(events) else events
    ),
    catches=["scripted.answer.whole", "scripted.answer.stream"],
)
scripted(
    "thoughts-marked",
    "Thoughts begin with their marker.",
    whole=thoughts(lambda text: f"<think>{text}"),
    stream=streamed_thoughts(lambda text: f"<think>{text}"),
    catches=["scripted.thoughts.opening"],
)


def _tag(body: Any, exchange: Exchange) -> None:
    del exchange
    for _, message in messages(body):
        message["content"] = f"</think>{message.get('content') or ''}"


scripted(
    "thoughts-leak",
    "The end of the thoughts is the beginning of the content.",
    whole=_tag,
    stream=lambda events, exchange: told(events, "content", "</think>", last=True) if exchange else events,
    catches=["scripted.answer.whole", "scripted.answer.stream"],
)
_stop_whole, _stop_stream = reasons(lambda reason: "stop" if reason == "tool_calls" else reason)
scripted(
    "calls-end-with-stop",
    "Calls end with `stop`.",
    whole=_stop_whole,
    stream=_stop_stream,
    catches=["scripted.answer.whole", "scripted.answer.stream"],
)


def _made(body: Any, exchange: Exchange) -> None:
    del exchange
    for choice, message in messages(body):
        before, marker, _ = str(message.get("reasoning") or "").partition("<tool_call>")
        if marker:
            function = {"name": "get_weather", "arguments": "{}"}
            message["reasoning"], message["content"] = before, None
            message["tool_calls"] = [{"id": "call_0", "type": "function", "function": function}]
            choice["finish_reason"] = "tool_calls"


scripted(
    "thoughts-made",
    "A call within thoughts is made, and what follows it is lost.",
    whole=_made,
    catches=["scripted.shape.whole", "scripted.shape.call-in-thought"],
)
scripted(
    "blank-at-the-end",
    "A stream ends with a blank more.",
    stream=lambda events, exchange: told(events, "content", " ", last=True) if exchange else events,
    catches=["scripted.answer.alike"],
)


def _quiet(exchange: Exchange) -> bool:
    return (asked(exchange, "chat_template_kwargs") or {}).get("enable_thinking") is False


def _thought_instead(body: Any, exchange: Exchange) -> None:
    del exchange
    for _, message in messages(body):
        message["reasoning"], message["content"] = message.get("content"), None


def _streamed_thought_instead(events: list[Event], exchange: Exchange) -> list[Event]:
    del exchange
    for _, _, delta in deltas(events):
        if delta.get("content"):
            delta["reasoning"] = delta.pop("content")
    return events


scripted(
    "quiet-thoughts",
    "With thinking switched off, the text is taken for thoughts.",
    whole=_thought_instead,
    stream=_streamed_thought_instead,
    when=_quiet,
    needs=["--reasoning-parser", "qwen3"],
    catches=["scripted.quiet.whole", "scripted.quiet.stream"],
)
