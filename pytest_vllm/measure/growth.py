"""How fast something grows while it is watched. Pure."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from pytest_vllm.measure.statistics import ALPHA, LEAST, Interval, mean_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Readings that say anything at all.
FEW = 3 * LEAST


def growth(points: Sequence[tuple[float, float]], error: float = ALPHA) -> Interval | None:
    """Growth per second, by the straight line of least squares; None with too few points.

    Neighbours depend on each other: what each adds to the slope is drawn again in blocks, as for a mean.

    Args:
        points: (second, value), in order of time.
        error: probability of either end being wrong.
    """
    if len(points) < FEW:
        return None
    middle, level = fmean(at for at, _ in points), fmean(value for _, value in points)
    spread = fmean((at - middle) ** 2 for at, _ in points)
    if spread <= 0:
        return None
    slope = fmean((at - middle) * (value - level) for at, value in points) / spread
    parts = [(at - middle) * (value - level - slope * (at - middle)) / spread for at, value in points]
    doubt = mean_interval(parts, error)
    return Interval(slope, slope + doubt.low, slope + doubt.high, len(points), error, doubt.independent)
