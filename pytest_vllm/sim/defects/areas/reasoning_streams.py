"""Defects that only streams of thoughts show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.sim.defects.calls import HERE, deltas, thought_of
from pytest_vllm.sim.defects.registry import defect

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

KEYS = ("reasoning", "reasoning_content")


@defect(
    "reasoning.tail-lost",
    on="events",
    paths=HERE,
    faults=["REASON-021"],
    versions="0.20",
    catches=["reasoning.parity.thoughts"],
)
def tail_lost(events: list[Event], exchange: Exchange) -> list[Event]:
    """The last words of streamed thoughts are missing."""
    del exchange
    thoughtful = [delta for _, _, delta in deltas(events) if thought_of(delta)]
    for delta in thoughtful[len(thoughtful) - len(thoughtful) // 4 :]:
        for key in KEYS:
            delta.pop(key, None)
    return events


@defect(
    "reasoning.interleaved",
    on="events",
    paths=HERE,
    faults=["REASON-024"],
    catches=["reasoning.order"],
)
def interleaved(events: list[Event], exchange: Exchange) -> list[Event]:
    """In streams the last thoughts come after the first words of the text."""
    del exchange
    thoughtful = [event for event in events if any(thought_of(delta) for _, _, delta in deltas([event]))]
    spoken = [
        event
        for event in events
        if any(d.get("content") and not d.get("role") for _, _, d in deltas([event]))
    ]
    if not thoughtful or not spoken:
        return events
    late = thoughtful[-1]
    kept = [event for event in events if event is not late]
    at = [event is spoken[0] for event in kept].index(True) + 1
    return [*kept[:at], late, *kept[at:]]


@defect("reasoning.line-lost", on="events", paths=HERE, catches=["reasoning.parity.content"])
def line_lost(events: list[Event], exchange: Exchange) -> list[Event]:
    """In streams the piece that holds both the end of the thoughts and the first words is lost."""
    del exchange
    if any(thought_of(delta) for _, _, delta in deltas(events)):
        spoken = [d for _, _, d in deltas(events) if (d.get("content") or "").strip()]
        for delta in spoken[:1]:
            delta.pop("content")
    return events
