"""How far another process's clock is from ours, from questions and answers. Pure.

`time.perf_counter` is one clock for all processes of a machine, and another one on every machine. Latencies
are differences of one clock and need no offset; where a request lies in the whole load's time does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Offset:
    """Seconds that another clock is ahead of ours, and by how much that may be wrong."""

    ahead: float = 0.0
    error: float = 0.0


def offset_of(rounds: Sequence[tuple[float, float, float]]) -> Offset:
    """The offset that the quickest round tells; none where both may be the same clock.

    Args:
        rounds: of each, when we asked, what the other clock said, when that came.
    """
    asked, told, came = min(rounds, key=lambda one: one[2] - one[0])
    error = (came - asked) / 2
    ahead = told - (asked + came) / 2
    return Offset() if abs(ahead) <= error else Offset(ahead, error)


def uncertainty(before: Offset, after: Offset) -> float:
    """Seconds by which moments of the other clock may be placed wrongly in a load between two estimates."""
    return max(before.error, after.error) + abs(after.ahead - before.ahead)
