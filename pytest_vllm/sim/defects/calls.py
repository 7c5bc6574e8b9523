"""Changing tool calls and thoughts in chat answers: whole messages, deltas of streams."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.edit import choices
from pytest_vllm.sim.defects.registry import Defect, add
from pytest_vllm.sim.defects.scope import CHAT, only

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

Json = dict[str, Any]
HERE = (CHAT,)
WHOLE, STREAM = ("json",), ("events",)
BOTH = (*WHOLE, *STREAM)


def messages(body: Any) -> Iterator[tuple[Json, Json]]:
    """(choice, message) of a whole answer."""
    for choice in (body.get("choices") or ()) if isinstance(body, dict) else ():
        if "message" in choice:
            yield choice, choice["message"]


def whole_calls(body: Any) -> Iterator[Json]:
    """The calls of a whole answer."""
    for _, message in messages(body):
        yield from message.get("tool_calls") or ()


def deltas(events: list[Event]) -> Iterator[tuple[Event, Json, Json]]:
    """(event, choice, delta) of a chat stream."""
    for event, choice in choices(events):
        if "delta" in choice:
            yield event, choice, choice["delta"]


def call_deltas(events: list[Event]) -> Iterator[tuple[Json, Json]]:
    """(choice, part) for every tool-call delta."""
    for _, choice, delta in deltas(events):
        for part in delta.get("tool_calls") or ():
            yield choice, part


def threads(events: list[Event]) -> dict[tuple[int, int], list[Json]]:
    """The deltas of each call, by the choice's index and its own."""
    found: dict[tuple[int, int], list[Json]] = {}
    for choice, part in call_deltas(events):
        found.setdefault((choice["index"], part["index"]), []).append(part)
    return found


def joined(parts: list[Json]) -> str:
    """The arguments of a call, from its deltas."""
    return "".join((part.get("function") or {}).get("arguments") or "" for part in parts)


def spread(parts: list[Json], text: str) -> None:
    """Other arguments for a call, over the deltas that carried the healthy ones."""
    carriers = [part["function"] for part in parts if (part.get("function") or {}).get("arguments")]
    at = 0
    for number, function in enumerate(carriers):
        end = at + len(function["arguments"]) if number < len(carriers) - 1 else len(text)
        function["arguments"] = text[at:end]
        at = max(at, end)


def arguments(
    name: str,
    summary: str,
    change: Callable[[str], str],
    points: tuple[str, ...] = BOTH,
    **facts: Any,
) -> Defect:
    """The arguments of every call are others, in whole answers, in streams, or in both."""

    def whole(body: Any, exchange: Exchange) -> Any:
        del exchange
        for call in whole_calls(body):
            call["function"]["arguments"] = change(call["function"]["arguments"])
        return body

    def stream(events: list[Event], exchange: Exchange) -> list[Event]:
        del exchange
        for parts in threads(events).values():
            spread(parts, change(joined(parts)))
        return events

    return both(name, summary, whole, stream, points, **facts)


def values(change: Callable[[Any], Any]) -> Callable[[str], str]:
    """A change of arguments that replaces every value in them, keys aside."""

    def changed(text: str) -> str:
        try:
            found = json.loads(text)
        except ValueError:
            return text
        return json.dumps(walk(found, change), ensure_ascii=False)

    return changed


def walk(node: Any, change: Callable[[Any], Any]) -> Any:
    """Every value of an object, replaced; those that come back unchanged are walked into."""
    if isinstance(node, dict):
        return {key: _walked(value, change) for key, value in node.items()}
    return node


def _walked(value: Any, change: Callable[[Any], Any]) -> Any:
    other = change(value)
    return other if other is not value else walk(value, change)


def both(
    name: str,
    summary: str,
    whole: Callable[..., Any],
    stream: Callable[..., Any],
    points: tuple[str, ...] = BOTH,
    **facts: Any,
) -> Defect:
    """A defect of chat answers: of whole ones, of streams, or of both."""
    functions = {"json": whole, "events": stream}
    return add(name, summary, {point: only(HERE, functions[point]) for point in points}, **facts)


def asked(exchange: Exchange, key: str) -> Any:
    """A field of the request; None when it was not sent."""
    return exchange.body.get(key) if isinstance(exchange.body, dict) else None


def thought_of(part: Json) -> str:
    """The thoughts of a message or a delta."""
    return str(part.get("reasoning") or part.get("reasoning_content") or "")


def turns(body: Any) -> list[Json]:
    """The messages of a request, as far as they are any."""
    given = body.get("messages") if isinstance(body, dict) else None
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def offered(body: Any) -> list[Json]:
    """The tools of a request, as far as they are any."""
    given = body.get("tools") if isinstance(body, dict) else None
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def required(exchange: Exchange) -> bool:
    """Whether a call was required."""
    return bool(asked(exchange, "tool_choice") == "required")


def named(exchange: Exchange) -> bool:
    """Whether a function was named."""
    return isinstance(asked(exchange, "tool_choice"), dict)


def uncalled(events: list[Event]) -> list[Event]:
    """A stream without its calls; deltas that carried nothing else are gone."""
    kept = []
    for event in events:
        data = event.data
        had = isinstance(data, dict) and any(
            c.get("delta", {}).get("tool_calls") for c in data.get("choices") or ()
        )
        if not had:
            kept.append(event)
            continue
        for choice in data["choices"]:
            choice["delta"].pop("tool_calls", None)
        if any(c["delta"].get("content") or c.get("finish_reason") for c in data["choices"]):
            kept.append(event)
    return kept


def told(events: list[Event], field: str, text: str, *, last: bool = False) -> list[Event]:
    """A stream with a delta more, before the first or after the last that carries anything."""
    carriers = [
        number
        for number, event in enumerate(events)
        if any(delta.keys() - {"role"} and any(delta.values()) for _, _, delta in deltas([event]))
        and not any(delta.get("role") for _, _, delta in deltas([event]))
    ]
    if not carriers:
        carriers = [number for number, event in enumerate(events) if event.finish]
    if not carriers:
        return events
    at = carriers[-1] + 1 if last else carriers[0]
    beside = events[carriers[-1] if last else carriers[0]]
    at = at - 1 if last and beside.finish else at
    data = copy.deepcopy(beside.data)
    for choice in data["choices"]:
        choice["delta"], choice["finish_reason"] = {field: text}, None
    return [*events[:at], replace(beside, data=data), *events[at:]]


def finished(events: list[Event], change: Callable[[str], str]) -> list[Event]:
    """A stream with other finish reasons."""
    for _, choice in choices(events):
        if choice.get("finish_reason"):
            choice["finish_reason"] = change(choice["finish_reason"])
    return events


def broken_off(events: list[Event], keep: Callable[[Event], bool], error: str) -> list[Event]:
    """A stream that ends in an error after the events that are kept."""
    kept = []
    for event in events:
        if not keep(event):
            break
        kept.append(event)
    body = {"error": {"message": error, "type": "InternalServerError", "param": None, "code": 500}}
    after = events[len(kept)] if len(kept) < len(events) else events[-1]
    return [*kept, replace(after, data=body), *[event for event in events if event.is_done]]
