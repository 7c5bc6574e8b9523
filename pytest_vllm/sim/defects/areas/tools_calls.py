"""Defects of tool calls: their ids, indices, names, how many there are, how they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import (
    HERE,
    asked,
    both,
    call_deltas,
    deltas,
    joined,
    spread,
    threads,
    whole_calls,
)
from pytest_vllm.sim.defects.make import spoil
from pytest_vllm.sim.defects.registry import defect

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange


@defect(
    "tools.first-delta-without-id",
    on="events",
    paths=HERE,
    faults=["TOOL-006"],
    versions="0.8.5",
    catches=["tools.stream.first-id"],
)
def first_without_id(events: list[Event], exchange: Exchange) -> list[Event]:
    """The first delta of a streamed call has no id."""
    del exchange
    for _, part in call_deltas(events):
        part.pop("id", None)
    return events


@defect("tools.type-late", on="events", paths=HERE, catches=["tools.stream.first-type"])
def type_late(events: list[Event], exchange: Exchange) -> list[Event]:
    """The type of a streamed call comes with its second delta."""
    del exchange
    for parts in threads(events).values():
        parts[0].pop("type", None)
        if len(parts) > 1:
            parts[1]["type"] = "function"
    return events


@defect("tools.name-late", on="events", paths=HERE, faults=["TOOL-076"], catches=["tools.stream.first-name"])
def name_late(events: list[Event], exchange: Exchange) -> list[Event]:
    """The first delta of a streamed call has an empty name, which comes with the second."""
    del exchange
    for parts in threads(events).values():
        if len(parts) > 1:
            name = parts[0]["function"]["name"]
            parts[0]["function"]["name"] = ""
            parts[1].setdefault("function", {})["name"] = name
    return events


@defect(
    "tools.name-cut",
    on="events",
    paths=HERE,
    faults=["TOOL-035"],
    catches=["tools.calls.declared", "tools.forced.parity"],
)
def name_cut(events: list[Event], exchange: Exchange) -> list[Event]:
    """The name of a streamed call ends at its first underscore."""
    del exchange
    for _, part in call_deltas(events):
        function = part.get("function") or {}
        if function.get("name"):
            function["name"] = function["name"].partition("_")[0]
    return events


@defect(
    "tools.index-always-zero",
    on="events",
    paths=HERE,
    faults=["TOOL-019"],
    catches=["tools.parallel.index", "tools.parallel.parity"],
)
def index_always_zero(events: list[Event], exchange: Exchange) -> list[Event]:
    """Parallel calls of a stream all have the index 0."""
    del exchange
    for _, part in call_deltas(events):
        part["index"] = 0
    return events


@defect(
    "tools.index-missing", on="events", paths=HERE, catches=["tools.stream.index", "tools.parallel.index"]
)
def index_missing(events: list[Event], exchange: Exchange) -> list[Event]:
    """Deltas of calls have no index."""
    del exchange
    for _, part in call_deltas(events):
        part.pop("index", None)
    return events


@defect("tools.later-ids-empty", on="events", paths=HERE, faults=["TOOL-075"], catches=["tools.stream.once"])
def later_ids_empty(events: list[Event], exchange: Exchange) -> list[Event]:
    """Every later delta of a streamed call has an empty id."""
    del exchange
    for parts in threads(events).values():
        for part in parts[1:]:
            part["id"] = ""
    return events


@defect("tools.arguments-objects", on="events", paths=HERE, catches=["tools.stream.arguments"])
def arguments_objects(events: list[Event], exchange: Exchange) -> list[Event]:
    """Deltas carry arguments as lists of characters."""
    del exchange
    for _, part in call_deltas(events):
        function = part.get("function") or {}
        if function.get("arguments"):
            function["arguments"] = list(function["arguments"])
    return events


@defect(
    "tools.lump",
    on="events",
    paths=HERE,
    faults=["TOOL-002", "TOOL-052"],
    versions="0.11 to 0.16, per parser",
    catches=["tools.stream.pieces"],
)
def lump(events: list[Event], exchange: Exchange) -> list[Event]:
    """The arguments of a streamed call come in one piece, after a pause."""
    del exchange
    emptied = []
    for parts in threads(events).values():
        carriers = [part for part in parts if (part.get("function") or {}).get("arguments")]
        text = joined(parts)
        for part in carriers[:-1]:
            part["function"].pop("arguments")
            emptied += [part] if not part["function"] else []
        if carriers:
            carriers[-1]["function"]["arguments"] = text
    return [event for event in events if not _carries(event, emptied)]


@defect("tools.late", on="events", paths=HERE, catches=["tools.stream.spread"])
def late(events: list[Event], exchange: Exchange) -> list[Event]:
    """The pieces of a streamed call are held back until it is complete; the answer ends with `stop`."""
    if not asked(exchange, "tools"):
        return events
    end = events[-1]
    for event in events:
        if any(delta.get("tool_calls") for _, _, delta in deltas([event])):
            event.at, event.when = end.at, end.when
        for _, choice, _ in deltas([event]):
            if choice.get("finish_reason") == "tool_calls":
                choice["finish_reason"] = "stop"
    return events


def _carries(event: Event, emptied: list[dict[str, Any]]) -> bool:
    parts = [part for _, part in call_deltas([event])]
    return bool(parts) and all(any(part is one for one in emptied) for part in parts)


spoil(
    "tools.ids-alike",
    "All calls of all answers have one id.",
    HERE,
    "choices.*.message.tool_calls.*.id",
    "call_0",
    area="tools",
    catches=["tools.calls.ids-unique"],
)
spoil(
    "tools.id-empty",
    "Calls have an empty id.",
    HERE,
    "choices.*.message.tool_calls.*.id",
    "",
    area="tools",
    catches=["tools.calls.id"],
)
spoil(
    "tools.type-other",
    "Calls have the type `tool`.",
    HERE,
    "choices.*.message.tool_calls.*.type",
    "tool",
    area="tools",
    catches=["tools.calls.type"],
)
spoil(
    "tools.name-qualified",
    "The names of calls carry their namespace.",
    HERE,
    "choices.*.message.tool_calls.*.function.name",
    lambda name: f"functions.{name}",
    area="tools",
    catches=["tools.calls.declared", "tools.forced.exact"],
)


def _kimi(body: Any, exchange: Exchange) -> Any:
    del exchange
    for number, call in enumerate(whole_calls(body)):
        call["id"] = f"chatcmpl-tool-{number:016x}"
    return body


def _kimi_stream(events: list[Event], exchange: Exchange) -> list[Event]:
    del exchange
    for _, part in call_deltas(events):
        if part.get("id"):
            part["id"] = f"chatcmpl-tool-{part['index']:016x}"
    return events


both(
    "tools.ids-of-another-model",
    "Kimi's calls have ids that its template can't read back.",
    _kimi,
    _kimi_stream,
    area="tools",
    faults=["TOOL-043"],
    needs=["--tool-call-parser", "kimi_k2"],
    catches=["tools.calls.id-form"],
)


@defect(
    "tools.second-call-lost",
    on="events",
    paths=HERE,
    faults=["TOOL-022"],
    catches=["tools.parallel.parity"],
)
def second_call_lost(events: list[Event], exchange: Exchange) -> list[Event]:
    """Of parallel calls, a stream holds the first only."""
    del exchange
    return [event for event in events if not any(part["index"] for _, part in call_deltas([event]))]


@defect(
    "tools.whole-second-call-lost",
    on="json",
    paths=HERE,
    catches=["tools.parallel.two", "tools.parallel.parity"],
)
def whole_second_call_lost(body: Any, exchange: Exchange) -> Any:
    """Of parallel calls, a whole answer holds the first only."""
    del exchange
    for choice in body.get("choices") or ():
        calls = choice.get("message", {}).get("tool_calls") or []
        del calls[1:]
    return body


@defect("tools.order-changed", on="events", paths=HERE, catches=["tools.parallel.parity"])
def order_changed(events: list[Event], exchange: Exchange) -> list[Event]:
    """Parallel calls of a stream have each other's names and arguments."""
    del exchange
    found = threads(events)
    names = {key: parts[0]["function"].get("name") for key, parts in found.items()}
    texts = {key: joined(parts) for key, parts in found.items()}
    for (choice, index), parts in found.items():
        other = (choice, 1 - index)
        if other in names:
            parts[0]["function"]["name"] = names[other]
            spread(parts, texts[other])
    return events


def _doubled(message: dict[str, Any]) -> None:
    calls = message.get("tool_calls") or []
    if len(calls) == 1:
        calls.append({**calls[0], "id": f"{calls[0]['id']}-2"})


@defect(
    "tools.parallel-ignored",
    on="json",
    paths=HERE,
    faults=["TOOL-020"],
    versions="0.6 to 0.11",
    catches=["tools.single.auto", "tools.single.required"],
)
def parallel_ignored(body: Any, exchange: Exchange) -> Any:
    """`parallel_tool_calls` false is taken and ignored."""
    if asked(exchange, "parallel_tool_calls") is False:
        for choice in body.get("choices") or ():
            _doubled(choice["message"])
    return body


@defect("tools.named-twice", on="json", paths=HERE, catches=["tools.forced.one-named"])
def named_twice(body: Any, exchange: Exchange) -> Any:
    """A named tool choice gives the call twice."""
    if isinstance(asked(exchange, "tool_choice"), dict):
        for choice in body.get("choices") or ():
            _doubled(choice["message"])
    return body


@defect("tools.second-choice-bare", on="json", paths=HERE, catches=["tools.two.called"])
def second_choice_bare(body: Any, exchange: Exchange) -> Any:
    """Of several choices only the first has its calls."""
    del exchange
    for choice in body.get("choices", ())[1:]:
        choice.get("message", {}).pop("tool_calls", None)
    return body
