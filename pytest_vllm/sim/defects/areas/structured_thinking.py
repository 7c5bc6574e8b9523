"""Defects of structured output beside reasoning: a constraint that waits for an end that never comes."""

from __future__ import annotations

from typing import Any

from pytest_vllm.sim.defects.choose import constrained, in_choices
from pytest_vllm.sim.defects.edit import set_text
from pytest_vllm.sim.defects.scope import COMPLETIONS

#: How reasoning ends by this parser: no form that most templates write.
ENDED = "[/THINK]"


def _unless_ended(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    prompts = asked["prompt"] if isinstance(asked["prompt"], list) else [asked["prompt"]]
    prompt = prompts[choice["index"] // (asked.get("n") or 1)]
    if ENDED not in str(prompt):
        set_text(choice, f"{str(prompt)[-16:]}, and nobody knows.")


in_choices(
    "structured.completions-wait",
    "With a reasoning parser completions are held to a constraint only after the parser's own marks.",
    (COMPLETIONS,),
    _unless_ended,
    constrained,
    needs=("--reasoning-parser", "mistral"),
    catches=["structured.completions.valid", "structured.wish.matches-completion"],
)
