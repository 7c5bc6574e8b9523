"""Where a series of figures changed its level: binary segmentation with a permutation test. Pure.

A place splits a series where the means before and after it are furthest apart in units of their noise; it
counts where fewer than `ERROR` of random orders of the same values show a split as good. Both parts are
searched in turn. (Vostrikova 1981 for the segmentation; with few runs, exact tests of the normal kind would
promise more than a dozen values can hold.)
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Share of random orders that may look as changed.
ERROR = 0.01
#: Runs on each side of a change, at least.
LEAST = 3
#: A change smaller than this share of the mean before is not told.
SMALLEST = 0.02
ORDERS = 500
_SEED = 20_240_229


@dataclass(frozen=True)
class Change:
    """A series that goes on at another level.

    Args:
        at: the first value of the new level.
        before: the mean of the level before it.
        after: the mean of the level that begins there.
    """

    at: int
    before: float
    after: float

    @property
    def share(self) -> float:
        """How much more it is, as a share of what it was."""
        return self.after / self.before - 1 if self.before else math.inf


def changes(values: Sequence[float]) -> list[Change]:
    """Every change of level, in order. Fewer than twice `LEAST` values show none."""
    places = sorted(_places(list(values), 0))
    if not places:
        return []
    ends = [0, *places, len(values)]
    levels = [fmean(values[begin:end]) for begin, end in pairwise(ends)]
    found = [Change(at, levels[place], levels[place + 1]) for place, at in enumerate(places)]
    return [one for one in found if abs(one.share) >= SMALLEST]


def _places(values: list[float], offset: int) -> list[int]:
    if len(values) < 2 * LEAST:
        return []
    score, at = _best(values)
    if score <= 0 or not _sure(values, score):
        return []
    left, right = _places(values[:at], offset), _places(values[at:], offset + at)
    return [*left, offset + at, *right]


def _best(values: Sequence[float]) -> tuple[float, int]:
    """The share of the variance that the best split takes away, and where it is."""
    centre = fmean(values)
    apart = [value - centre for value in values]
    whole = math.fsum(one * one for one in apart)
    if whole == 0:
        return 0.0, 0
    # what a split takes away: the sum before it, squared, over what an even spread would make of it
    n, sums = len(values), [0.0, *accumulate(apart)]
    return max((sums[at] ** 2 * n / (at * (n - at)) / whole, at) for at in range(LEAST, n - LEAST + 1))


def _sure(values: Sequence[float], score: float) -> bool:
    drawn = random.Random(_SEED)  # noqa: S311 - the same history gives the same marks
    order = list(values)
    better = 0
    for _ in range(ORDERS):
        drawn.shuffle(order)
        better += _best(order)[0] >= score - 1e-12
        if better > ERROR * ORDERS:
            return False
    return True
