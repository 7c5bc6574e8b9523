"""Defects of two things together, each of which is right on its own."""

from __future__ import annotations

from typing import Any

from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, only
from pytest_vllm.sim.errors import ApiError


def _seeded_choices(body: Any, path: str) -> Any:
    del path
    several = isinstance(body, dict) and isinstance(body.get("n"), int) and 4 < body["n"] < 10
    if several and body.get("seed") is not None:
        raise ApiError("list index out of range", 500, "InternalServerError")
    return body


add(
    "pairs.seeded-choices-crash",
    "Five choices with a seed end in a server error.",
    {"body": only((CHAT, COMPLETIONS), _seeded_choices)},
    catches=["pairs.answered"],
)


def _without_tools(prompt: list[int], body: dict[str, Any]) -> list[int]:
    long = len(body.get("messages") or ()) == 9 and bool(body.get("stream"))
    return prompt[:-1] if long else prompt


add(
    "pairs.streamed-talk-shortened",
    "A streamed conversation of nine turns loses the last token of its prompt.",
    {"prompt": _without_tools},
    catches=["pairs.counted"],
)


@defect(
    "pairs.unbound-when-drawn", on="body", paths=(COMPLETIONS,), catches=["pairs.bound", "spelling.scripts"]
)
def unbound_when_drawn(body: Any, path: str) -> Any:
    """A constraint is forgotten where several choices are drawn."""
    del path
    several = isinstance(body, dict) and (body.get("n") or 1) not in (1, 3)
    return {key: value for key, value in body.items() if key != "structured_outputs"} if several else body
