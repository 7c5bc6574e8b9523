"""A sequence of tokens that the engine computes, one per choice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pytest_vllm.sim.engine.blocks import Key


class Listener(Protocol):
    """Who wants to know of a sequence's progress."""

    def progressed(self, sequence: Sequence) -> None:
        """More tokens are there; `sequence.done` of them in all."""


@dataclass(eq=False)
class Sequence:
    """Prompt, the tokens that will come, and how far the engine is.

    `computed` tokens lie in the KV cache; `done` output tokens were handed out. Times are virtual seconds.
    """

    id: str
    prompt: list[int]
    output: list[int]
    finish: str
    listener: Listener
    salt: object = None
    priority: int = 0
    arrived: float = 0.0
    skip_cache: bool = False
    max_tokens: int = 0
    computed: int = 0
    done: int = 0
    cached: int = -1
    preemptions: int = 0
    keys: list[Key] = field(default_factory=list)
    held: list[Key] = field(default_factory=list)
    plain: int = 0
    scheduled: float | None = None
    first: float | None = None
    last: float = 0.0
    ended: str = ""
    error: Exception | None = None

    @property
    def known(self) -> int:
        """Tokens that exist: prompt and handed-out output."""
        return len(self.prompt) + self.done

    @property
    def blocks(self) -> int:
        """Blocks that it holds."""
        return len(self.held) + self.plain

    def token(self, at: int) -> int:
        """Token number `at` of prompt and output together."""
        size = len(self.prompt)
        return self.prompt[at] if at < size else self.output[at - size]
