"""What a series of measurements says of the mean or the median behind it, and of a bound. Pure.

Values of a server come one after another and depend on each other: a slow second follows a slow second.
So intervals come from a block bootstrap, whole runs of neighbours drawn together. Decisions may be asked
for while values still arrive: each look spends a part of the allowed error (`Spending`), so that looking
often does not make a false alarm likelier.

Sources: Künsch 1989 (moving blocks), Lan and DeMets 1983 (spending the error over looks), Kim and DeMets 1987
(by a power of the share).
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate
from statistics import NormalDist, fmean, median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Allowed error on each side of a decision: how often a server exactly at its bound may be blamed.
ALPHA = 0.01
#: Fewer values than these decide nothing.
LEAST = 8
#: Drawn series per interval.
DRAWS = 400
_SEED = 20_240_229


class Outcome(StrEnum):
    """Where an interval lies."""

    HOLDS = "holds"
    FAILS = "fails"
    OPEN = "undecided"


@dataclass(frozen=True)
class Interval:
    """An estimate and how sure it is.

    Args:
        value: the estimate, in the values' unit.
        low: lower end.
        high: upper end.
        n: values it rests on.
        error: probability of either end being on the wrong side.
        independent: how many independent values the `n` are worth.
    """

    value: float
    low: float
    high: float
    n: int
    error: float = ALPHA
    independent: float = 0.0

    def map(self, change: Callable[[float], float]) -> Interval:
        """The interval of a monotonic function of the value; the ends are put in order."""
        ends = sorted((change(self.low), change(self.high)))
        return Interval(change(self.value), ends[0], ends[1], self.n, self.error, self.independent)

    def against(self, floor: float | None = None, ceiling: float | None = None) -> Outcome:
        """Whether it is clear of the bounds, on which side."""
        if (floor is not None and self.high < floor) or (ceiling is not None and self.low > ceiling):
            return Outcome.FAILS
        above = floor is None or self.low >= floor
        below = ceiling is None or self.high <= ceiling
        return Outcome.HOLDS if above and below else Outcome.OPEN

    def more(self, floor: float | None = None, ceiling: float | None = None) -> float | None:
        """How many times as many values would decide, were the estimate right; None when never.

        The width of an interval shrinks with the square root of the number of values.
        """
        times = 1.0
        for bound in (floor, ceiling):
            if bound is None:
                continue
            distance = abs(self.value - bound)
            reach = self.value - self.low if bound <= self.value else self.high - self.value
            if reach > distance:
                if not math.isfinite(reach) or distance <= abs(bound) * 1e-3:
                    return None
                times = max(times, (reach / distance) ** 2)
        return times


@dataclass
class Spending:
    """How much of the allowed error each look at growing data may use.

    Args:
        alpha: all of it, on each side.
        looks: shares of the budget that had been spent when it was looked, growing.
    """

    alpha: float = ALPHA
    looks: list[float] = field(default_factory=list)

    def look(self, share: float) -> float:
        """The error that this look may use; `share` of the budget is spent."""
        share = min(1.0, max(share, self.looks[-1] if self.looks else 0.0))
        self.looks.append(share)
        return self.error

    @property
    def error(self) -> float:
        """The error of the last look: alpha times what the square of the spent share grew by since the last.

        Squares leave most of it to the last look: an early one is for what lies far from its bound, and that
        is found with little. Without a look, all of it.
        """
        if not self.looks:
            return self.alpha
        before = self.looks[-2] if len(self.looks) > 1 else 0.0
        return self.alpha * max(self.looks[-1] ** 2 - before**2, 1e-4)


def mean_interval(values: Sequence[float], error: float = ALPHA, block: int | None = None) -> Interval:
    """The mean with a block bootstrap's spread and Student's margin. Raises ValueError without values.

    Args:
        values: in the order in which they were measured.
        error: probability of either end being wrong.
        block: neighbours that are drawn together; found from the values unless given.
    """
    n = len(values)
    centre = fmean(values)
    if n < 2:
        return Interval(centre, -math.inf, math.inf, n, error)
    length = min(block or block_length(values), max(1, n // 4))
    spread = _spread(values, length)
    if spread == 0:
        return Interval(centre, centre, centre, n, error, float(n))
    # a short series looks calmer and less dependent than it is: count what it is worth
    worth = independent(values)
    lone = math.sqrt(sum((value - centre) ** 2 for value in values) / (n - 1))
    spread = max(spread * math.sqrt(n / (n - length)), lone / math.sqrt(worth))
    margin = student(error, max(worth - 1, 1.0)) * spread
    return Interval(centre, centre - margin, centre + margin, n, error, worth)


def median_interval(values: Sequence[float], error: float = ALPHA) -> Interval:
    """The median, its ends by the sign test's ranks widened for dependence.

    Raises ValueError without values.
    """
    ordered = sorted(values)
    n = len(ordered)
    centre = median(ordered)
    if n < 2:
        return Interval(centre, -math.inf, math.inf, n, error)
    worth = independent(values)
    reach = NormalDist().inv_cdf(1 - error) * 0.5 / math.sqrt(worth) * n
    low: int = math.floor(n / 2 - reach) - 1
    high: int = math.ceil(n / 2 + reach)
    below = ordered[low] if low >= 0 else -math.inf
    above = ordered[high] if high < n else math.inf
    return Interval(centre, below, above, n, error, worth)


def steady_interval(values: Sequence[float], error: float = ALPHA) -> Interval:
    """The mean without what stands far out: beyond five usual distances from the median is cut off.

    For figures of a simulator, which are even but for moments at which the machine stood still.
    """
    centre = median(values)
    usual = median(abs(value - centre) for value in values)
    reach = max(5 * usual, 1e-6 * abs(centre))
    return mean_interval([min(max(value, centre - reach), centre + reach) for value in values], error)


def ratio_interval(now: Interval, before: Interval) -> Interval:
    """How many times `before` the value is now, both positive and measured apart (noise of both counts)."""
    value = now.value / before.value
    quantile = NormalDist().inv_cdf(1 - now.error)
    known = NormalDist().inv_cdf(1 - before.error)
    here = (now.high - now.low) / 2 / now.value
    there = (before.high - before.low) / 2 / before.value * quantile / known
    margin = value * math.hypot(here, there)
    return Interval(value, value - margin, value + margin, min(now.n, before.n), now.error)


def paired_interval(
    now: Sequence[float], before: Sequence[float], error: float = ALPHA, block: int | None = None
) -> Interval:
    """How many times `before` the value is now, from pairs that were measured side by side.

    What disturbs both of a pair cancels out. Raises ValueError when there are not as many of both.
    """
    logs = [math.log(a / b) for a, b in zip(now, before, strict=True)]
    return mean_interval(logs, error, block).map(math.exp)


def block_length(values: Sequence[float]) -> int:
    """How many neighbours depend on each other: at least n^(1/3), more where they look alike for longer."""
    n = len(values)
    least = max(1, round(math.cbrt(n)))
    threshold = 2 / math.sqrt(n)
    for lag in range(1, max(2, n // 4)):
        if _correlation(values, lag) < threshold:
            return max(least, 2 * (lag - 1))
    return max(least, n // 4)


def independent(values: Sequence[float]) -> float:
    """How many independent values these are worth: n (1 - r) / (1 + r), r the correlation of neighbours.

    Short series show too little of it: r is corrected by (1 + 4 r) / n (Marriott and Pope 1954), and negative
    correlation earns nothing.
    """
    n = len(values)
    if n < 4:
        return float(max(n, 2))
    seen = _correlation(values, 1)
    true = min(max(seen + (1 + 4 * seen) / n, 0.0), 1 - 2 / n)
    return max(2.0, n * (1 - true) / (1 + true))


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed, between neighbours linearly. Raises ValueError."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def student(error: float, freedom: float) -> float:
    """Student's t that is exceeded with probability `error`; Cornish-Fisher, exact enough from 3 on."""
    z = NormalDist().inv_cdf(1 - error)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, start=1))


def _spread(values: Sequence[float], length: int) -> float:
    """The standard error of the mean: of means of series drawn in blocks of `length`, with a fixed seed."""
    n = len(values)
    sums = [0.0, *accumulate(values)]
    means = [(sums[at + length] - sums[at]) / length for at in range(n - length + 1)]
    drawn = random.Random(_SEED)  # noqa: S311 - the same values give the same interval
    count = max(1, round(n / length))
    totals = [fmean(drawn.choices(means, k=count)) for _ in range(DRAWS)]
    centre = fmean(totals)
    # so many blocks are drawn, of so many values in all: scale to n
    return math.sqrt(fmean((one - centre) ** 2 for one in totals) * count * length / n)


def _correlation(values: Sequence[float], lag: int) -> float:
    centre = fmean(values)
    spread = sum((value - centre) ** 2 for value in values)
    if spread == 0 or lag >= len(values):
        return 0.0
    pairs = zip(values, values[lag:], strict=False)
    return sum((a - centre) * (b - centre) for a, b in pairs) / spread
