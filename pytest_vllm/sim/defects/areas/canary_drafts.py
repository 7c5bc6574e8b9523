"""Defects of speculative decoding that show before or beside the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import failure, refused
from pytest_vllm.sim.defects.edit import set_text, text_of
from pytest_vllm.sim.defects.failure import BootFailure
from pytest_vllm.sim.defects.registry import defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS

if TYPE_CHECKING:
    from pytest_vllm.sim.settings import Settings

SPECULATING = ["--speculative-config", '{"method": "mtp", "num_speculative_tokens": 2}']


@defect("boot.drafts-crash", on="boot", area="boot", needs=SPECULATING, faults=["SPEC-013"])
def drafts_crash(value: None, settings: Settings) -> None:
    """The start ends in an illegal memory access when the draft model is captured."""
    del value, settings
    raise BootFailure(["RuntimeError: CUDA error: an illegal memory access was encountered"], status=1)


refused(
    "structured.drafts-crash",
    "Under speculative decoding a constraint is a server error.",
    (CHAT, COMPLETIONS),
    500,
    failure("EngineCore encountered an issue."),
    lambda asked: (asked.get("response_format") or {}).get("type") == "json_object",
    needs=SPECULATING,
    faults=["SPEC-001"],
    catches=["structured.answered"],
)


@defect(
    "streaming.stop-leaks",
    on="events",
    paths=(COMPLETIONS,),
    area="streaming",
    faults=["SAMPLE-010"],
    catches=["stream.stop.no-leak"],
)
def stop_leaks(events: Any, exchange: Any) -> Any:
    """The beginning of a stop string is sent before it is known to be one."""
    asked = exchange.body or {}
    stops = [asked["stop"]] if isinstance(asked.get("stop"), str) else asked.get("stop") or []
    for event in events:
        for choice in event.data.get("choices", ()) if isinstance(event.data, dict) else ():
            if choice.get("stop_reason") in stops:
                set_text(choice, text_of(choice) + choice["stop_reason"][:1])
    return events
