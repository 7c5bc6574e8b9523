"""Changing the answers to requests that carry a script, where the text is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import (
    HERE,
    asked,
    deltas,
    finished,
    joined,
    messages,
    spread,
    thought_of,
    threads,
    uncalled,
    whole_calls,
)
from pytest_vllm.sim.defects.registry import Defect, add
from pytest_vllm.sim.defects.scope import only

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

    Whole = Callable[[Any, Exchange], object]
    Stream = Callable[[list[Event], Exchange], list[Event]]
    When = Callable[[Exchange], object]

Json = dict[str, Any]
THOUGHT = "Let me look."


def always(exchange: Exchange) -> bool:
    """Every scripted request."""
    del exchange
    return True


def told_to(exchange: Exchange, when: When) -> bool:
    """Whether a request carries a script, and is meant."""
    return bool(asked(exchange, "vllm_xargs")) and bool(when(exchange))


def scripted(
    name: str, summary: str, *, whole: Whole | None = None, stream: Stream | None = None, **facts: Any
) -> Defect:
    """A defect of answers to scripted chats: `whole` changes a body in place, `stream` gives other events."""
    when: When = facts.pop("when", always)
    on: dict[str, Callable[..., Any]] = {}
    if whole is not None:
        change = whole

        def body_of(body: Any, exchange: Exchange) -> Any:
            if isinstance(body, dict) and told_to(exchange, when):
                change(body, exchange)
            return body

        on["json"] = only(HERE, body_of)
    if stream is not None:
        other = stream

        def events_of(events: list[Event], exchange: Exchange) -> list[Event]:
            return other(events, exchange) if told_to(exchange, when) else events

        on["events"] = only(HERE, events_of)
    return add(f"scripted.{name}", summary, on, profile="sim-scripted", **facts)


def arguments(change: Callable[[str], str]) -> tuple[Whole, Stream]:
    """Other arguments, whole and streamed."""

    def whole(body: Any, exchange: Exchange) -> None:
        del exchange
        for call in whole_calls(body):
            call["function"]["arguments"] = change(call["function"]["arguments"])

    def stream(events: list[Event], exchange: Exchange) -> list[Event]:
        del exchange
        for parts in threads(events).values():
            spread(parts, change(joined(parts)))
        return events

    return whole, stream


def drop_calls(body: Any, exchange: Exchange) -> None:
    """A whole answer without its calls."""
    del exchange
    for choice, message in messages(body):
        if message.pop("tool_calls", None):
            choice["finish_reason"] = "stop"


def drop_streamed_calls(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream without its calls."""
    del exchange
    return finished(uncalled(events), lambda reason: "stop" if reason == "tool_calls" else reason)


def no_content(body: Any, exchange: Exchange) -> None:
    """A whole answer without its text."""
    del exchange
    for _, message in messages(body):
        message["content"] = None


def no_streamed_content(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream without its text."""
    del exchange
    for _, _, delta in deltas(events):
        delta.pop("content", None)
    return events


def thoughts(change: Callable[[str], str]) -> Whole:
    """Other thoughts in whole answers."""

    def whole(body: Any, exchange: Exchange) -> None:
        del exchange
        for _, message in messages(body):
            for key in ("reasoning", "reasoning_content"):
                if message.get(key):
                    message[key] = change(message[key])

    return whole


def streamed_thoughts(change: Callable[[str], str]) -> Stream:
    """Other thoughts in streams: the first piece is changed."""

    def stream(events: list[Event], exchange: Exchange) -> list[Event]:
        del exchange
        for _, _, delta in deltas(events):
            if thought_of(delta):
                key = "reasoning" if "reasoning" in delta else "reasoning_content"
                delta[key] = change(delta[key])
                break
        return events

    return stream


def reasons(change: Callable[[str], str]) -> tuple[Whole, Stream]:
    """Other finish reasons, whole and streamed."""

    def whole(body: Any, exchange: Exchange) -> None:
        del exchange
        for choice, _ in messages(body):
            choice["finish_reason"] = change(choice["finish_reason"])

    return whole, lambda events, exchange: finished(events, change) if exchange else events


def counts(field: str, change: Callable[[int], int]) -> tuple[Whole, Stream]:
    """Other token counts, whole and streamed."""

    def alter(usage: Any) -> None:
        details = usage.get("completion_tokens_details") or {}
        for place in (usage, details):
            if isinstance(place.get(field), int):
                place[field] = change(place[field])

    def whole(body: Any, exchange: Exchange) -> None:
        del exchange
        alter(body.get("usage") or {})

    def stream(events: list[Event], exchange: Exchange) -> list[Event]:
        del exchange
        for event in events:
            if isinstance(event.data, dict) and event.data.get("usage"):
                alter(event.data["usage"])
        return events

    return whole, stream


def cut(exchange: Exchange) -> bool:
    """Requests with a limit of tokens."""
    return asked(exchange, "max_tokens") is not None
