"""Speeds beside what was promised, as the page draws them."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_vllm.measure.measured import Measured
from pytest_vllm.measure.statistics import Interval
from pytest_vllm.measure.workload import Workload
from pytest_vllm.report.bars import Bar, bars, measured


def row(observed: str, verdict: str = "pass", reason: str = "") -> dict[str, Any]:
    observations = {"speed": observed} if observed else {}
    facts = {"check": "throughput.decode.floor", "profile": "sim", "verdict": verdict}
    return {**facts, "reason": reason, "observations": observations}


@pytest.mark.parametrize(
    ("name", "limits", "promise"),
    [
        ("decode-tok-s", "floor 6", "at least 6"),
        ("ttft", "limit 0.5 s", "at most 0.5 s"),
        ("goodput", "floor 1, limit 9", "at least 1 and at most 9"),
    ],
)
def test_what_a_measurement_shows_is_read_back(name: str, limits: str, promise: str) -> None:
    """The words that checks observe and those that the page reads are the same."""
    load = Measured("throughput.decode", Workload(), 1.0)
    shown = load.shown(name, Interval(3.3, 3.1, 3.5, 240), limits)

    (bar,) = bars(row(f"{shown}; and more"))

    assert (bar.name, bar.value, bar.low, bar.high) == (name, 3.3, 3.1, 3.5)
    assert bar.promise == promise


def test_a_figure_without_a_promise_has_no_row_and_a_failure_without_a_figure_has_one() -> None:
    """The table holds what decides, and what went wrong."""
    free = row("decode-tok-s 3.3 (3.1 to 3.5, 98 %, n 240, 12 s)")
    lost = row("", "fail", "2 requests failed")

    assert [(one["observed"], one["bar"]) for one in measured([free, lost, row("")])] == [
        ("2 requests failed", None)
    ]


def test_a_bar_shows_where_the_promise_lies() -> None:
    """Half of a floor is half as long as the way to it; what is far beyond ends at the edge."""
    half, beyond = (Bar("decode-tok-s", value, value, value, 6.0, None) for value in (3.0, 600.0))

    assert 'x1="132.0" x2="132.0" y1="1"' in half.svg("fail")
    assert '<rect class="fail" x="0" y="5" width="66.0"' in half.svg("fail")
    assert 'width="218.0" height="8"' in beyond.svg("pass")
    assert 'aria-label="decode-tok-s 3 (3 to 3), promised at least 6"' in half.svg("fail")
