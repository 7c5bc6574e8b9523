"""What the client's own state says against the figures, and what it does not."""

from __future__ import annotations

import pytest

from pytest_vllm.measure.health import LATENCIES, Client, doubts
from pytest_vllm.measure.samples import Sample

#: Two hundred deltas, 10 ms apart.
STREAM = [Sample("x", 0.0, 0.0, None, [0.01 * n for n in range(200)], 2.0, tokens=200)]
IN_TIME = [0.0001] * 99


@pytest.mark.parametrize(
    ("late", "stamped", "figures"),
    [
        (0.0015, False, None),
        (0.005, False, LATENCIES),
        (0.005, True, None),  # the kernel's times stand for single events
        (0.02, True, ("itl",)),  # two events of a stream were there before the first was read
    ],
)
def test_late_reading_counts_where_it_spoils_a_time(
    late: float, stamped: bool, figures: tuple[str, ...] | None
) -> None:
    """At 10 ms between two events; the 99th percentile is judged."""
    client = Client(cpu=0.1, seconds=2.0, lags=[*IN_TIME, late, late], stamped=stamped)

    assert [one.figures for one in doubts(client, STREAM, 1.0)] == ([] if figures is None else [figures])


def test_one_late_reading_in_two_hundred_is_nothing() -> None:
    client = Client(cpu=0.1, seconds=2.0, lags=[*IN_TIME, *IN_TIME, 0.5], stamped=False)

    assert doubts(client, STREAM, 1.0) == []


@pytest.mark.parametrize(
    ("cpu", "counted", "doubted"), [(1.7, False, True), (1.5, False, False), (1.7, True, False)]
)
def test_a_client_may_take_four_fifths_of_a_core(cpu: float, counted: bool, doubted: bool) -> None:
    """Not where the server's own counts are judged, as on a simulator."""
    client = Client(cpu=cpu, seconds=2.0, lags=IN_TIME, stamped=True)

    assert bool(doubts(client, STREAM, 1.0, counted=counted)) is doubted


@pytest.mark.parametrize(
    ("in_flight", "asked", "counted", "doubted"),
    [
        (15.0, 16, False, True),
        (15.9, 16, False, False),
        (3.0, None, False, False),
        (13.0, 16, True, False),
        (12.7, 16, True, True),
    ],
)
def test_fewer_in_flight_than_asked_for_spoil_what_all_of_them_share(
    in_flight: float, asked: int | None, counted: bool, doubted: bool
) -> None:
    """A simulator's own counts tell of each stream: there a fifth may be missing."""
    client = Client(0.1, 2.0, IN_TIME, stamped=True, in_flight=in_flight, asked=asked)
    found = doubts(client, STREAM, 1.0, counted=counted)

    assert [one.figures for one in found] == [("aggregate-tok-s", "requests-s", "goodput")] * doubted


def test_a_clock_that_was_set_spoils_latencies() -> None:
    client = Client(0.1, 2.0, IN_TIME, stamped=True, stepped=True)

    assert [one.figures for one in doubts(client, STREAM, 1.0)] == [LATENCIES]
