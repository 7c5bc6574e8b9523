"""A start seen from outside: the time it takes, how far it is, how it went."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

_OLD_LINE = 2.0


class Clock(Protocol):
    """Time, as far as waiting needs it."""

    def now(self) -> float:
        """Seconds that only ever grow."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""


class SystemClock:
    """The machine's own time."""

    def now(self) -> float:
        """Seconds that only ever grow."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)


@dataclass(frozen=True)
class Progress:
    """How far a start is.

    Args:
        elapsed: seconds since the start.
        phase: "loading weights".
        detail: "7 of 15 shards", "" when there is none.
        line_age: seconds since the last log line, None for a server that has no log.
    """

    elapsed: float
    phase: str
    detail: str = ""
    line_age: float | None = None

    @property
    def text(self) -> str:
        """For people; the age of the last line is told once it is worth knowing."""
        joint = ": " if self.phase == "sizing KV cache" else ", "
        text = f"{self.phase}{joint}{self.detail}" if self.detail else self.phase
        if self.line_age is not None and self.line_age >= _OLD_LINE:
            text += f", last log line {self.line_age:.0f}s ago"
        return text


@dataclass(frozen=True)
class Boot:
    """A start that succeeded.

    Args:
        url: where the server answers.
        seconds: from the start to the first healthy answer.
        phases: (phase, second of its begin), in order.
        facts: figures from the log: `kv-cache-tokens`, `weights-gib`, …
    """

    url: str
    seconds: float
    phases: tuple[tuple[str, float], ...]
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def slowest(self) -> tuple[str, float]:
        """The phase that took longest, and how many seconds."""
        ends = [*(at for _, at in self.phases[1:]), self.seconds]
        spans = [(name, end - at) for (name, at), end in zip(self.phases, ends, strict=True)]
        return max(spans, key=lambda span: span[1])
