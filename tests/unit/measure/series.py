"""Series of a simulated server's speed: so much noise, and each value like the one before it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random


@dataclass(frozen=True)
class Noise:
    """Noise around a level.

    Args:
        share: standard deviation as a share of the level.
        alike: correlation of a value with the one before it.
    """

    share: float = 0.05
    alike: float = 0.5

    def series(self, drawn: random.Random, level: float, count: int) -> list[float]:
        """So many values, one per second of load."""
        state = drawn.gauss(0, 1)
        values = []
        for _ in range(count):
            state = self.alike * state + math.sqrt(1 - self.alike**2) * drawn.gauss(0, 1)
            values.append(level * (1 + self.share * state))
        return values


def shared(drawn: random.Random, count: int, drop: float) -> tuple[list[float], list[float]]:
    """Two servers side by side in turn, disturbed by the same neighbours; the second is slower by `drop`."""
    disturbance = Noise(0.10, 0.9).series(drawn, 1.0, count)
    own = Noise(0.05, 0.0)
    first = [a * b for a, b in zip(disturbance, own.series(drawn, 100.0, count), strict=True)]
    second = [a * b for a, b in zip(disturbance, own.series(drawn, 100.0 * (1 - drop), count), strict=True)]
    return second, first
