"""Defects of what agents ask for: work in the background, turns before, plain-text tools, budgets, beams."""

from __future__ import annotations

from typing import Any

from pytest_vllm.sim.defects.choose import asks, in_body
from pytest_vllm.sim.defects.make import ignores, spoil
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, RESPONSES, only

STORE = ["VLLM_ENABLE_RESPONSES_API_STORE=1"]
KEPT = (f"{RESPONSES}/resp_",)

ignores(
    "responses.background-waits",
    "A response that is asked for in the background is answered when it is done.",
    ["background"],
    (RESPONSES,),
    environ=STORE,
    catches=["responses.background.queued"],
)
ignores(
    "responses.state-lost",
    "A response goes on from nothing: the one before is not looked up.",
    ["previous_response_id"],
    (RESPONSES,),
    environ=STORE,
    catches=["responses.state.counted", "responses.state.call"],
)
spoil(
    "responses.cancel-forgotten",
    "A response that was cancelled is said to be in progress.",
    KEPT,
    "status",
    lambda status: "in_progress" if status == "cancelled" else status,
    environ=STORE,
    catches=["responses.background.cancelled"],
)


@defect("responses.custom-as-function", on="json", paths=(RESPONSES,), catches=["responses.custom.item"])
def custom_as_function(body: Any, exchange: Any) -> Any:
    """Calls of tools that take plain text come as calls of functions."""
    del exchange
    for item in body.get("output") or () if isinstance(body, dict) else ():
        if item.get("type") == "custom_tool_call":
            item |= {"type": "function_call", "arguments": item.pop("input")}
    return body


ignores(
    "reasoning.budget-ignored",
    "A budget of thinking tokens has no effect.",
    ["thinking_token_budget"],
    (CHAT,),
    area="reasoning",
    catches=["reasoning.budget.kept"],
)


def _without_developer(body: Any, path: str) -> Any:
    del path
    turns = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(turns, list):
        return body
    kept = [turn for turn in turns if not (isinstance(turn, dict) and turn.get("role") == "developer")]
    return {**body, "messages": kept}


add(
    "chat.developer-dropped",
    "A developer's messages never reach the prompt.",
    {"body": only((CHAT,), _without_developer)},
    catches=["chat.messages.developer"],
)


def _one_for_all(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for choice in body["choices"]:
        choice["text"] = body["choices"][0]["text"]


def _first_alone(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    del body["choices"][1:]


in_body(
    "completions.beams-equal",
    "All beams of a search end in the same text.",
    (COMPLETIONS,),
    _one_for_all,
    asks("use_beam_search"),
    catches=["completions.beams"],
)
in_body(
    "completions.beams-one",
    "A search with several beams gives one text.",
    (COMPLETIONS,),
    _first_alone,
    asks("use_beam_search"),
    catches=["completions.beams"],
)
