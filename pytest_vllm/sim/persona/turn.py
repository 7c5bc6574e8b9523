"""What the persona is asked, and what it answers."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Turn:
    """One request as the persona sees it.

    `messages` have plain text content; `variant` numbers the choices, 0 is the greedy answer;
    `constraint` is a structured-output wish, `choice` the tool choice, `colours` those of pictures shown,
    `budget` the most tokens of reasoning, `effort` how much of it is wanted.
    """

    messages: list[dict[str, Any]]
    prompt: str = ""
    tools: list[dict[str, Any]] = field(default_factory=list)
    choice: Any = None
    parallel: bool = True
    constraint: dict[str, Any] | None = None
    thinking: bool = False
    variant: int = 0
    seed: str = ""
    room: int = 1 << 30
    colours: list[str] = field(default_factory=list)
    budget: int | None = None
    effort: str = ""

    @property
    def asked(self) -> str:
        """The last user message."""
        for message in reversed(self.messages):
            if message.get("role") in ("user", "tool", "function"):
                return str(message.get("content") or "")
        return str(self.messages[-1].get("content") or "") if self.messages else self.prompt

    @property
    def rng(self) -> random.Random:
        """Chance, the same for the same turn."""
        return random.Random(f"{self.seed}/{self.variant}")  # noqa: S311 - repeatable, not secret

    def pick(self, phrasings: list[str]) -> str:
        """The first phrasing when greedy; neighbouring variants take different ones."""
        return phrasings[self.variant % len(phrasings)]


@dataclass
class Answer:
    """What is said: thoughts, text, calls (name and arguments each)."""

    content: str
    thoughts: str | None = None
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
