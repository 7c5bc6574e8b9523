"""Defects of event streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.sim.defects.edit import choices, content, set_text, text_of
from pytest_vllm.sim.defects.make import spoil_events, without_events
from pytest_vllm.sim.defects.registry import defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

BOTH = (CHAT, COMPLETIONS)

without_events("streaming.no-done", "Streams end without the [DONE] mark.", BOTH, lambda event: event.is_done)
spoil_events(
    "streaming.finish-never",
    "No chunk of a chat stream carries a finish reason.",
    (CHAT,),
    "choices.*.finish_reason",
    None,
    faults=["STREAM-002"],
)


@defect("streaming.multi-byte-cut", on="events", paths=BOTH, faults=["STREAM-010"])
def multi_byte_cut(events: list[Event], exchange: Exchange) -> list[Event]:
    """Characters that span tokens arrive as replacement characters."""
    del exchange
    for _, choice in content(events):
        text = text_of(choice)
        set_text(choice, "".join(char if char.isascii() else "\ufffd" for char in text))
    return events


@defect("streaming.role-in-every-chunk", on="events", paths=(CHAT,), faults=["STREAM-001"])
def role_in_every_chunk(events: list[Event], exchange: Exchange) -> list[Event]:
    """Every delta repeats the role."""
    del exchange
    for _, choice in choices(events):
        if "delta" in choice:
            choice["delta"] = {"role": "assistant", **choice["delta"]}
    return events
