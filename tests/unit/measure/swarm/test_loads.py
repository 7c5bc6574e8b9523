"""Loads that two of Locust's workers send to a server with known delays: truth, count, schedule."""

from __future__ import annotations

from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.measure.run import perform
from pytest_vllm.measure.workload import Kind, Prompts, Script, Workload
from tests.unit.measure.swarm.conftest import EVENTS, FIRST, GAP

if TYPE_CHECKING:
    from pytest_vllm.measure.measured import Measured
    from pytest_vllm.measure.swarm.crew import Crew
    from tests.unit.measure.swarm.conftest import Null

KIND = Kind("null", Prompts(tokens=16), output=None)
#: Seconds that a loaded machine with two cores may be late in the middle of many; none may be early.
LATE, EARLY = 0.005, 0.0005


def load(null: Null, crew: Crew | None, **workload: Any) -> Measured:
    """A load without what comes before and beside it."""
    asked = Workload(kinds=(KIND,), warmup=0, canary=False, cold=False, **workload)
    return perform("swarm", asked, null.server, crew=crew)


def test_first_tokens_and_gaps_are_those_of_the_server(null: Null, crew: Crew) -> None:
    measured = load(null, crew, streams=6, requests=18)

    firsts = [one.deltas[0] - one.sent for one in measured.samples]
    gaps = [gap for one in measured.samples for gap in one.gaps]
    assert min(firsts) >= FIRST - EARLY
    assert median(firsts) <= FIRST + LATE
    assert len(gaps) == 18 * (EVENTS - 1)
    assert median(gaps) == pytest.approx(GAP, abs=GAP / 10)


def test_every_request_is_counted_once(null: Null, crew: Crew) -> None:
    measured = load(null, crew, streams=6, requests=20)

    assert (measured.spoiled, measured.stopped, measured.errors) == ("", "requests", [])
    assert (len(measured.samples), len(null.truth())) == (20, 20)
    assert {name for name in measured.client if " of " in name} == {
        "cpu-share of worker 1",
        "cpu-share of worker 2",
    }


def test_both_workers_share_one_time(null: Null, crew: Crew) -> None:
    measured = load(null, crew, streams=6, requests=18)

    rows = null.truth()
    apart = [
        (row["arrived"] - rows[0]["arrived"]) - (one.sent - measured.samples[0].sent)
        for row, one in zip(rows, measured.samples, strict=True)
    ]
    assert median(map(abs, apart)) <= LATE


def test_a_rate_that_is_shared_keeps_its_arrivals(null: Null, crew: Crew) -> None:
    measured = load(null, crew, rate=60.0, requests=31)

    wanted = list(islice(Script(Workload(rate=60.0), "").arrivals(), 31))
    assert sorted(one.intended for one in measured.samples) == pytest.approx(wanted, abs=1e-6)
    late = [row["arrived"] - at for row, at in zip(null.truth(), wanted, strict=True)]
    assert median(abs(one - median(late)) for one in late) <= LATE
    assert all(one.ttft is not None and one.ttft >= one.deltas[0] - one.sent for one in measured.samples)


def test_one_process_and_two_workers_find_the_same(null: Null, crew: Crew) -> None:
    alone, both = (load(null, which, streams=4, seconds=0.8) for which in (None, crew))

    for name in ("decode-tok-s", "aggregate-tok-s", "tpot"):
        one, two = alone.interval(name), both.interval(name)
        assert two.value == pytest.approx(one.value, rel=0.1), name
    assert both.doubts == ()
    decided = both.decide("decode-tok-s", floor=50.0), both.decide("decode-tok-s", floor=200.0)
    assert [one.holds for one in decided] == [True, False]


def test_a_server_that_is_not_there_is_told(crew: Crew, null: Null) -> None:
    from dataclasses import replace

    measured = perform("swarm", Workload(), replace(null.server, url="http://127.0.0.1:9"), crew=crew)

    assert measured.stopped.startswith("the server cannot be reached")
    assert load(null, crew, streams=2, requests=4).errors == []
