"""What the decisions find and how often they are wrong, by simulated series: no server, no clock.

The whole of it is a run of its own: `pytest tests/unit/measure -m power`.
"""

from __future__ import annotations

import random

import pytest

from pytest_vllm.measure.statistics import (
    Outcome,
    Spending,
    mean_interval,
    median_interval,
    paired_interval,
    ratio_interval,
)
from tests.unit.measure.series import Noise, shared

MINUTE = 60
#: What a profile lets a speed fall behind its baseline by.
ALLOWED = 0.02
QUICK, WHOLE = 40, 200


def found(drop: float, seconds: int, runs: int, noise: Noise | None = None) -> float:
    """The share of runs in which a regression is found, both servers measured for so long."""
    drawn = random.Random(7)  # noqa: S311 - series
    noise = noise or Noise()
    alarms = 0
    for _ in range(runs):
        before = mean_interval(noise.series(drawn, 100.0, seconds))
        now = mean_interval(noise.series(drawn, 100.0 * (1 - drop), seconds))
        alarms += ratio_interval(now, before).against(floor=1 - ALLOWED) is Outcome.FAILS
    return alarms / runs


def sequential(level: float, floor: float, runs: int) -> tuple[float, float, float]:
    """Shares of runs decided as failing and as holding, and the share of the budget that they took."""
    drawn = random.Random(11)  # noqa: S311 - series
    failed = held = 0
    spent = 0.0
    for _ in range(runs):
        values = Noise().series(drawn, level, 120)
        spending = Spending()
        for share in (0.12, 0.25, 0.4, 0.6, 0.8, 1.0):
            part = values[: int(share * len(values))]
            outcome = mean_interval(part, spending.look(share)).against(floor=floor)
            if outcome is not Outcome.OPEN:
                break
        spent += share
        failed += outcome is Outcome.FAILS
        held += outcome is Outcome.HOLDS
    return failed / runs, held / runs, spent / runs


@pytest.mark.power
def test_ten_percent_within_a_minute() -> None:
    """Found in 95 % of 200 runs, at 5 % noise whose values depend on each other."""
    assert found(0.10, MINUTE, WHOLE) >= 0.95


@pytest.mark.power
def test_five_percent_within_five_minutes() -> None:
    assert found(0.05, 5 * MINUTE, WHOLE) >= 0.95


@pytest.mark.power
@pytest.mark.parametrize("drop", [0.0, ALLOWED])
@pytest.mark.parametrize("seconds", [MINUTE, 5 * MINUTE])
def test_false_alarms(drop: float, seconds: int) -> None:
    """At most 2 %, also for a server that is as much slower as the profile allows."""
    assert found(drop, seconds, 2 * WHOLE) <= 0.02


@pytest.mark.power
@pytest.mark.parametrize("alike", [0.0, 0.3, 0.7])
def test_false_alarms_however_dependent(alike: float) -> None:
    assert found(ALLOWED, MINUTE, 2 * WHOLE, Noise(0.05, alike)) <= 0.025


@pytest.mark.power
def test_looking_often_costs_no_false_alarms() -> None:
    """A server exactly at its floor is blamed in at most 2 % of the runs, for all six looks together."""
    failed, _, _ = sequential(100.0, 100.0, 2 * WHOLE)

    assert failed <= 0.02


@pytest.mark.power
def test_interleaved_servers_cancel_what_disturbs_both() -> None:
    """At 10 % shared noise a 10 % regression is found within a minute, and none where there is none."""
    drawn = random.Random(3)  # noqa: S311 - series
    outcomes = {
        drop: [paired_interval(*shared(drawn, MINUTE, drop)).against(floor=1 - ALLOWED) for _ in range(WHOLE)]
        for drop in (0.0, 0.10)
    }

    assert outcomes[0.10].count(Outcome.FAILS) >= 0.95 * WHOLE
    assert outcomes[0.0].count(Outcome.FAILS) <= 0.02 * WHOLE


def test_a_regression_is_found_quickly() -> None:
    """The same in few runs, for every day."""
    assert found(0.10, MINUTE, QUICK) >= 0.9
    assert found(0.0, MINUTE, QUICK) == 0.0


def test_what_is_far_from_its_floor_is_decided_at_an_early_look() -> None:
    """Half of the speed fails and twice the speed holds, with most of the budget unspent."""
    slow, fast = sequential(50.0, 100.0, QUICK), sequential(200.0, 100.0, QUICK)

    assert slow[0] == fast[1] == 1.0
    assert max(slow[2], fast[2]) < 0.3


def test_what_is_at_its_floor_stays_undecided() -> None:
    failed, held, spent = sequential(100.0, 100.0, QUICK)

    assert failed + held < 0.15
    assert spent > 0.9


def test_intervals_hold_the_truth() -> None:
    """Of the mean and of the median, as often as they say."""
    drawn = random.Random(5)  # noqa: S311 - series
    series = [Noise().series(drawn, 100.0, 120) for _ in range(QUICK)]
    means = [mean_interval(one) for one in series]
    medians = [median_interval(one) for one in series]

    assert sum(one.low <= 100 <= one.high for one in means) >= 0.9 * QUICK
    assert sum(one.low <= 100 <= one.high for one in medians) >= 0.9 * QUICK
    assert all(one.high - one.low < 8 for one in means)
