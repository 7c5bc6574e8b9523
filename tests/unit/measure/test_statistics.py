"""Intervals, bounds and the time that would decide."""

from __future__ import annotations

import math
import random

import pytest

from pytest_vllm.measure.statistics import (
    ALPHA,
    Interval,
    Outcome,
    Spending,
    block_length,
    independent,
    mean_interval,
    median_interval,
    percentile,
    student,
)
from tests.unit.measure.series import Noise


@pytest.mark.parametrize(
    ("low", "high", "floor", "ceiling", "outcome"),
    [
        (6.1, 6.4, 6.0, None, Outcome.HOLDS),
        (5.1, 5.9, 6.0, None, Outcome.FAILS),
        (5.9, 6.1, 6.0, None, Outcome.OPEN),
        (6.0, 6.4, 6.0, None, Outcome.HOLDS),
        (0.1, 0.2, None, 0.5, Outcome.HOLDS),
        (0.6, 0.7, None, 0.5, Outcome.FAILS),
        (0.4, 0.6, None, 0.5, Outcome.OPEN),
        (5.0, 7.0, 4.0, 8.0, Outcome.HOLDS),
        (5.0, 9.0, 4.0, 8.0, Outcome.OPEN),
    ],
)
def test_an_interval_is_clear_of_a_bound_or_not(
    low: float, high: float, floor: float | None, ceiling: float | None, outcome: Outcome
) -> None:
    assert Interval((low + high) / 2, low, high, 20).against(floor, ceiling) is outcome


def test_time_to_decide_grows_with_the_square_of_what_is_missing() -> None:
    """Twice as far as the bound: four times as long; at the bound: never."""
    assert Interval(10.0, 8.0, 12.0, 20).more(floor=9.0) == pytest.approx(4.0)
    assert Interval(10.0, 9.5, 10.5, 20).more(floor=9.0) == 1.0
    assert Interval(10.0, 8.0, 12.0, 20).more(floor=10.0) is None


def test_an_inverted_interval_keeps_its_order() -> None:
    """Seconds per token become tokens per second."""
    rate = Interval(0.1, 0.08, 0.125, 20).map(lambda seconds: 1 / seconds)

    assert (rate.low, rate.value, rate.high) == pytest.approx((8.0, 10.0, 12.5))


def test_the_same_values_give_the_same_interval() -> None:
    """A replay says what the run said."""
    values = Noise().series(random.Random(1), 100.0, 60)  # noqa: S311 - series

    assert mean_interval(values) == mean_interval(list(values))


def test_dependent_values_are_worth_fewer() -> None:
    """An interval of values that follow each other is wider than that of the same ones shuffled."""
    drawn = random.Random(2)  # noqa: S311 - series
    values = Noise(0.05, 0.8).series(drawn, 100.0, 240)
    shuffled = drawn.sample(values, len(values))

    def width(of: list[float]) -> float:
        found = mean_interval(of)
        return found.high - found.low

    assert width(values) > 1.7 * width(shuffled)
    assert independent(values) < 100 < independent(shuffled)
    assert block_length(values) > block_length(shuffled)


@pytest.mark.parametrize("values", [[3.0], [3.0, 4.0]])
def test_few_values_bound_nothing(values: list[float]) -> None:
    assert median_interval(values).against(floor=1.0) is Outcome.OPEN


def test_values_that_do_not_vary_are_known() -> None:
    found = mean_interval([5.0] * 20)

    assert (found.low, found.high) == (5.0, 5.0)


def test_every_look_pays_for_itself() -> None:
    """All looks together spend the allowed error and no more."""
    spending = Spending()
    spent = [spending.look(share) for share in (0.12, 0.25, 0.4, 0.6, 0.8, 1.0)]

    assert sum(spent) == pytest.approx(ALPHA)
    assert Spending(looks=list(spending.looks)).error == spent[-1]
    assert Spending().error == ALPHA


def test_percentiles_lie_between_neighbours() -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
    assert percentile([4.0], 0.99) == 4.0
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


@pytest.mark.parametrize(
    ("freedom", "exact"), [(3, 3.482), (5, 2.757), (10, 2.359), (30, 2.147), (1e9, 2.0537)]
)
def test_students_margin(freedom: float, exact: float) -> None:
    """Against tables, at 2 %."""
    assert math.isclose(student(0.02, freedom), exact, rel_tol=0.02)
