"""Defects of the tool choice: finish reasons, choices that are ignored, requests that fail, prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import (
    HERE,
    STREAM,
    WHOLE,
    asked,
    both,
    deltas,
    finished,
    messages,
    named,
    required,
    told,
)
from pytest_vllm.sim.defects.registry import defect

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

CALL = {"id": "chatcmpl-tool-0", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}


def ends(
    name: str,
    summary: str,
    when: Callable[[Exchange], bool],
    reasons: dict[str, str],
    points: tuple[str, ...],
    **facts: Any,
) -> None:
    """Some answers end with another finish reason: `reasons` maps healthy ones to wrong ones."""

    def whole(body: Any, exchange: Exchange) -> Any:
        for choice, _ in messages(body) if when(exchange) else ():
            choice["finish_reason"] = reasons.get(choice["finish_reason"], choice["finish_reason"])
        return body

    def stream(events: list[Event], exchange: Exchange) -> list[Event]:
        return finished(events, lambda reason: reasons.get(reason, reason)) if when(exchange) else events

    both(name, summary, whole, stream, points, area="tools", **facts)


ends(
    "tools.finish-required",
    "A required call ends with `stop` in whole answers.",
    required,
    {"tool_calls": "stop"},
    WHOLE,
    faults=["TOOL-008"],
    versions="until 0.10.2",
    catches=["tools.finish.forced", "tools.finish.parity"],
)
ends(
    "tools.finish-required-stream",
    "A required call ends with `stop` in streams.",
    required,
    {"tool_calls": "stop"},
    STREAM,
    faults=["TOOL-008"],
    versions="until 0.10.2",
    catches=["tools.finish.forced-stream", "tools.finish.parity"],
)
ends(
    "tools.finish-named",
    "A named call ends with `tool_calls` in whole answers, and with `stop` in streams.",
    named,
    {"stop": "tool_calls"},
    WHOLE,
    faults=["TOOL-010"],
    catches=["tools.finish.parity"],
)
ends(
    "tools.finish-auto",
    "Calls that the model makes of its own accord end with `stop`.",
    lambda exchange: asked(exchange, "tool_choice") == "auto",
    {"tool_calls": "stop"},
    (*WHOLE, *STREAM),
    catches=["tools.finish.auto", "tools.finish.auto-stream"],
)
ends(
    "tools.cut-finish",
    "A call that the limit of tokens cuts ends with `tool_calls`.",
    lambda exchange: required(exchange) or named(exchange),
    {"length": "tool_calls"},
    (*WHOLE, *STREAM),
    catches=["tools.cut.finish", "tools.cut.finish-stream"],
)


@defect(
    "tools.finish-without-calls",
    on="json",
    paths=HERE,
    faults=["TOOL-009"],
    versions="0.27.0",
    catches=["tools.finish.empty"],
)
def finish_without_calls(body: Any, exchange: Exchange) -> Any:
    """A required call is missing, and the finish reason is `tool_calls` all the same."""
    if required(exchange):
        for _, message in messages(body):
            message.pop("tool_calls", None)
            message["content"] = ""
    return body


def _none(body: Any, exchange: Exchange) -> Any:
    if asked(exchange, "tool_choice") == "none" and asked(exchange, "tools"):
        for choice, message in messages(body):
            message["tool_calls"], choice["finish_reason"] = [CALL], "tool_calls"
    return body


def _none_stream(events: list[Event], exchange: Exchange) -> list[Event]:
    if asked(exchange, "tool_choice") != "none" or not asked(exchange, "tools"):
        return events
    more = told(events, "tool_calls", "")
    for _, _, delta in deltas(more):
        if "tool_calls" in delta:
            delta["tool_calls"] = [{"index": 0, **CALL}]
    return finished(more, lambda _: "tool_calls")


both(
    "tools.none-ignored",
    'With the tool choice "none" there are calls, with empty arguments.',
    _none,
    _none_stream,
    area="tools",
    faults=["TOOL-031"],
    catches=["tools.none.no-call", "tools.none.finish"],
)


def _mute(body: Any, exchange: Exchange) -> Any:
    if asked(exchange, "tool_choice") == "none" and asked(exchange, "tools"):
        for _, message in messages(body):
            message["content"] = ""
    return body


def _mute_stream(events: list[Event], exchange: Exchange) -> list[Event]:
    if asked(exchange, "tool_choice") == "none" and asked(exchange, "tools"):
        for _, _, delta in deltas(events):
            delta.pop("content", None)
    return events


both(
    "tools.none-mute",
    'With the tool choice "none" the text of the answer is taken away.',
    _mute,
    _mute_stream,
    area="tools",
    faults=["TOOL-029"],
    versions="0.28.0",
    catches=["tools.none.silent"],
)
