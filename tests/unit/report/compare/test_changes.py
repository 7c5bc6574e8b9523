"""Changes of level in a series: found where there are any, seldom where there are none."""

from __future__ import annotations

import random

import pytest

from pytest_vllm.report.compare.changes import changes

DRAWN = random.Random(11)  # noqa: S311 - a test's own


def series(*levels: tuple[float, int]) -> list[float]:
    return [value * (1 + DRAWN.gauss(0, 0.02)) for value, number in levels for _ in range(number)]


def test_noise_alone_is_seldom_a_change() -> None:
    assert sum(bool(changes(series((42.0, 30)))) for _ in range(100)) <= 4


def test_a_change_of_a_tenth_is_found_where_it_is() -> None:
    found = [changes(series((42.0, 20), (38.0, 8))) for _ in range(20)]

    assert sum(len(one) == 1 and abs(one[0].at - 20) <= 1 for one in found) >= 18


def test_two_changes_are_both_found() -> None:
    found = [one.share for one in changes(series((40.0, 15), (50.0, 15), (40.0, 15)))]

    assert found == [pytest.approx(0.25, abs=0.05), pytest.approx(-0.2, abs=0.05)]


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 50, [1.0, 2.0, 3.0, 4.0, 5.0]])
def test_short_and_even_series_have_none(values: list[float]) -> None:
    assert changes(values) == []
