"""How far two lists of scores of the same tokens are apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Nats in all from which on a factor between them is no rounding, and the factor.
ENOUGH, FACTOR = 15.0, 0.03
#: Nats per token that another batch or kernel may cost.
ROUNDED = 0.5
#: What the same score may be written otherwise by.
SAME = 1e-3


def per_token(pairs: Sequence[tuple[float, float]]) -> float:
    """How far two scores of a token are apart on average, in nats. Raises ZeroDivisionError without any."""
    return sum(abs(one - other) for one, other in pairs) / len(pairs)


def apart(pairs: Sequence[tuple[float, float]], *, exact: bool, factor: float = FACTOR) -> str:
    """How two lists of scores differ by more than rounding; empty where they do not.

    Rounding goes either way; what makes every score a little greater or less is none.

    Args:
        pairs: the score of a token in one answer and in another.
        exact: whether nothing is rounded, as on the simulator.
        factor: what part of all nats together may be due to rounding.
    """
    if not pairs:
        return ""
    each = per_token(pairs)
    if each > (SAME if exact else ROUNDED):
        return f"{each:.3f} nats per token between {len(pairs)} scores"
    sums = [sum(values) for values in zip(*pairs, strict=True)]
    if min(map(abs, sums)) >= ENOUGH and abs(sums[0] / sums[1] - 1) > factor:
        return f"{len(pairs)} scores are {sums[0]:.2f} nats together, elsewhere {sums[1]:.2f}"
    return ""
