"""Growth over time: found when it is there, not found in noise, nothing said of a handful."""

from __future__ import annotations

import random

import pytest

from pytest_vllm.measure.growth import growth


def series(slope: float, noise: float, count: int = 120, seed: int = 1) -> list[tuple[float, float]]:
    """So many seconds of a line with noise around it."""
    drawn = random.Random(seed)  # noqa: S311 - no secret
    return [(float(at), 1000 + slope * at + drawn.gauss(0, noise)) for at in range(count)]


@pytest.mark.parametrize("slope", [-2.0, 0.5, 3.0])
def test_a_slope_lies_in_its_interval(slope: float) -> None:
    """Per second, with its sign."""
    found = growth(series(slope, 5.0))

    assert found is not None
    assert found.low <= slope <= found.high
    assert found.value == pytest.approx(slope, abs=0.1)


def test_noise_is_no_growth() -> None:
    """Over 50 series without growth, zero lies in the interval of at least 48."""
    inside = 0
    for seed in range(50):
        found = growth(series(0.0, 5.0, seed=seed))
        assert found is not None
        inside += found.low <= 0 <= found.high

    assert inside >= 48


def test_few_readings_say_nothing() -> None:
    """Eight in each third are the least; time has to pass."""
    assert growth(series(1.0, 0.0, count=23)) is None
    assert growth([(0.0, 1.0)] * 60) is None
    assert growth(series(1.0, 0.0, count=24)) is not None
