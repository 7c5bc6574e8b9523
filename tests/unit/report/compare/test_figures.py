"""Speeds with their intervals, start and memory: what differs for sure, and what does not."""

from __future__ import annotations

import random
from statistics import fmean, stdev
from typing import Any

import pytest

from pytest_vllm.measure.statistics import mean_interval
from pytest_vllm.report.compare.difference import Weight
from pytest_vllm.report.compare.figures import alone, differences, paired, speeds
from tests.unit.report.compare.runs import part_of


def load(value: float, margin: float, figure: str = "decode-tok-s", **more: Any) -> dict[str, Any]:
    ends = {
        "value": value,
        "low": value - margin,
        "high": value + margin,
        "n": 100,
        "error": 0.01,
        "independent": 100.0,
    }
    return {"throughput.one": {"workload": {"streams": 1}, "figures": {figure: ends}, **more}}


@pytest.mark.parametrize(
    ("figure", "now", "change"),
    [
        ("decode-tok-s", 36.0, "slower"),
        ("decode-tok-s", 48.0, "faster"),
        ("decode-tok-s", 41.0, ""),
        ("ttft", 48.0, "slower"),
        ("ttft", 36.0, "faster"),
    ],
)
def test_a_speed_that_changed_for_sure(figure: str, now: float, change: str) -> None:
    (row,) = speeds(load(42.0, 0.4, figure), load(now, 0.4, figure))

    assert row["change"] == change


def test_a_noisy_speed_is_not_told_as_changed() -> None:
    (row,) = speeds(load(42.0, 9.0), load(36.0, 9.0))

    assert row["change"] == ""


def test_a_rate_of_uneven_ends_needs_what_its_time_needs() -> None:
    """Seen on a busy machine: the ends of a rate lie unevenly, and halves of them cried slower."""
    one, other = load(154.6, 0), load(63.2, 0)
    one["throughput.one"]["figures"]["decode-tok-s"] |= {"low": 108.9, "high": 266.3}
    other["throughput.one"]["figures"]["decode-tok-s"] |= {"low": 41.9, "high": 128.1}
    (row,) = speeds(one, other)

    assert row["change"] == ""
    assert 0 < row["ratio"]["low"] < row["ratio"]["value"] < row["ratio"]["high"]


def test_another_load_is_not_compared() -> None:
    (row,) = speeds(load(42.0, 0.4), load(20.0, 0.4, workload={"streams": 8}))

    assert (row["ratio"], row["change"], row["why"]) == (None, "", "measured under another load")


def test_a_against_a_is_seldom_told_as_changed_and_a_tenth_is_found() -> None:
    """Of series with real noise, drawn many times."""
    drawn = random.Random(5)  # noqa: S311 - a test's own

    def measured(speed: float) -> dict[str, Any]:
        values = [speed * (1 + drawn.gauss(0, 0.08)) for _ in range(120)]
        found = mean_interval(values)
        assert abs(fmean(values) - speed) < 5 * stdev(values)
        ends = {"value": found.value, "low": found.low, "high": found.high, "n": 120, "error": found.error}
        return {"t.one": {"workload": {}, "figures": {"decode-tok-s": {**ends, "independent": 120.0}}}}

    same = [speeds(measured(42.0), measured(42.0))[0]["change"] for _ in range(40)]
    slow = [speeds(measured(42.0), measured(37.0))[0]["change"] for _ in range(40)]

    assert same.count("") == 40
    assert slow.count("slower") >= 36


def test_requests_alone_on_the_server_are_compared_in_pairs() -> None:
    before = {f"a.{n}": 0.1 + n / 100 for n in range(30)}
    slower = {key: seconds * 1.6 for key, seconds in before.items()}

    assert (alone(before, before, simulated=False) or {})["change"] == ""
    assert (alone(before, slower, simulated=False) or {})["change"] == "slower"
    assert alone(before, slower, simulated=True) is None


def test_a_smaller_cache_is_behaviour_and_noise_of_memory_is_nothing() -> None:
    before = {
        **part_of(),
        "figures": {"kv-cache-tokens": 100_000.0, "memory-gib": 60.0, "main-memory-gib": 3.0},
    }
    after = {
        **part_of(),
        "figures": {"kv-cache-tokens": 90_000.0, "memory-gib": 60.4, "main-memory-gib": 3.1},
    }
    (one,) = differences([], before, after)

    assert (one.weight, one.what) == (Weight.BEHAVIOUR, "KV cache")
    assert "-10.0%" in one.means


def test_a_start_that_takes_twice_as_long_is_told() -> None:
    before, after = part_of(), {**part_of(), "boot": [["starting", 0.0], ["started", 90.0]]}

    assert [one.weight for one in differences([], before, after)] == [Weight.SPEED]
    assert list(differences([], before, {**before, "boot": [["started", 38.0]]})) == []


def turns(ratio: float, seed: int, *, pairs: int = 8, noise: float = 0.02) -> list[tuple[float, float]]:
    """Pairs of a busy machine: both sides drift together, each has its noise, one in twenty stumbles."""
    drawn = random.Random(seed)  # noqa: S311 - repeatable
    found = []
    for _ in range(pairs):
        shared = drawn.uniform(0.8, 1.2)
        sides = [
            shared * drawn.lognormvariate(0.0, noise) * drawn.choices((1.0, 0.9, 0.8), (38, 1, 1))[0]
            for _ in range(2)
        ]
        found.append((40 * sides[0], 40 * ratio * sides[1]))
    return found


def test_pairs_need_to_be_enough_and_say_which_is_slower() -> None:
    rows = paired({"one": {"decode-tok-s": [(40.0, 36.0)] * 4, "ttft": [(0.1, 0.2)] * 3}})

    assert [row["change"] for row in rows] == ["slower", ""]
    assert rows[0]["ratio"]["value"] == pytest.approx(0.9)
    assert "3 pairs are too few" in rows[1]["why"]


def test_equal_servers_are_not_told_as_changed_and_slower_ones_are() -> None:
    """A/A: at most 2 of 100 comparisons of six figures; 10 % slower: at least 95 of 100 comparisons."""

    def changed(ratio: float, number: int, pairs: int) -> list[str]:
        found = {f"load {n}": {"decode-tok-s": turns(ratio, 100 * number + n, pairs=pairs)} for n in range(6)}
        return [row["change"] for row in paired(found) if row["change"]]

    false = sum(bool(changed(1.0, number, pairs)) for number in range(100) for pairs in (5, 12))
    found = [changed(0.9, number, 12) for number in range(100)]

    assert false <= 4
    assert sum("slower" in one for one in found) >= 95
    assert not any("faster" in one for one in found)
