"""Defects of completions drawn beside others: seeds, lanes of a batch, the least number of tokens."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import in_body
from pytest_vllm.sim.defects.edit import set_text, text_of
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import COMPLETIONS, only, remembering

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = (COMPLETIONS,)
#: Seconds for which a request counts as one beside which others run, and choices that make a crowd.
BESIDE, CROWD = 0.5, 6


def _drawn(asked: dict[str, Any]) -> bool:
    return bool(asked.get("temperature", 1)) and asked.get("seed") is None


def _seed_lost() -> Callable[..., Any]:
    """A seed holds only where every request of a batch has one."""
    seen = [0.0]

    def changed(body: Any, path: str) -> Any:
        del path
        if not isinstance(body, dict):
            return body
        if _drawn(body):
            seen[0] = time.monotonic()
        elif time.monotonic() - seen[0] < BESIDE:
            return {name: value for name, value in body.items() if name != "seed"}
        return body

    return changed


add(
    "completions.seed-lost-beside-others",
    "A seed is ignored while a request without one runs beside it.",
    {"body": only(HERE, remembering(_seed_lost))},
    catches=["completions.seed.crowd"],
)


def _salted(body: dict[str, Any], asked: dict[str, Any]) -> None:
    for choice in (
        body["choices"] if asked.get("seed") is not None and isinstance(asked["prompt"], list) else ()
    ):
        set_text(choice, f"{text_of(choice)} {choice['index']}")


def _alike(body: dict[str, Any], asked: dict[str, Any]) -> None:
    if _drawn(asked) and len(body["choices"]) >= CROWD:
        for choice in body["choices"]:
            set_text(choice, text_of(body["choices"][0]))


in_body(
    "completions.seed-by-lane",
    "The same seed draws another text in each lane of a batch.",
    HERE,
    _salted,
    catches=["completions.seed.crowd"],
)
in_body(
    "completions.lanes-alike",
    "All lanes of a batch draw the same, without a seed.",
    HERE,
    _alike,
    catches=["completions.drawn.crowd"],
)


@defect("completions.least-late", on="body", paths=HERE, catches=["completions.min-tokens.exact"])
def least_late(body: Any, path: str) -> Any:
    """An answer may end one token later than its least number of tokens."""
    del path
    least = body.get("min_tokens") if isinstance(body, dict) else None
    return {**body, "min_tokens": least + 1} if least and least < (body.get("max_tokens") or 16) else body
