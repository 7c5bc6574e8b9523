"""Loads that two of Locust's workers send to a server with known delays: truth, count, schedule."""

from __future__ import annotations

import socket
import subprocess
import sys
from itertools import islice, pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.measure.run import perform
from pytest_vllm.measure.statistics import percentile
from pytest_vllm.measure.swarm.crew import Crew
from pytest_vllm.measure.workload import Goal, Kind, Prompts, Script, Workload
from tests.unit.measure.swarm.conftest import EVENTS, FIRST, GAP, address_of

if TYPE_CHECKING:
    from pytest_vllm.measure.measured import Measured
    from tests.unit.measure.swarm.conftest import Null

KIND = Kind("null", Prompts(tokens=16), output=None)
#: Seconds that a client on a busy machine may be wrong in the middle of many; none may be early.
LATE, EARLY = 0.005, 0.0005


def load(null: Null, crew: Crew | None, **workload: Any) -> Measured:
    """A load without what comes before and beside it."""
    asked = Workload(kinds=(KIND,), warmup=0, canary=False, cold=False, **workload)
    return perform("swarm", asked, null.server, crew=crew)


def apart(measured: Measured, rows: list[dict[str, Any]]) -> float:
    """How far four in five times of sending are from when the server got the requests, but for a shift."""
    late = [row["arrived"] - one.sent for row, one in zip(rows, measured.samples, strict=True)]
    return percentile([abs(one - median(late)) for one in late], 0.8)


def test_first_tokens_and_gaps_are_those_of_the_server(null: Null, crew: Crew) -> None:
    """A machine that is busy may let the workers read late; then the gaps are right, or they are doubted."""
    measured = load(null, crew, streams=6, requests=18)

    rows = null.truth()
    firsts = [one.deltas[0] - one.sent for one in measured.samples]
    wrong = [first - (row["written"][0] - row["arrived"]) for first, row in zip(firsts, rows, strict=True)]
    assert min(firsts) >= FIRST - EARLY
    assert median(map(abs, wrong)) <= LATE
    gaps = [gap for one in measured.samples for gap in one.gaps]
    wrote = [after - before for row in rows for before, after in pairwise(row["written"])]
    assert len(gaps) == len(wrote) == 18 * (EVENTS - 1)
    assert min(wrote) < 1.5 * GAP
    assert measured.doubt("decode-tok-s") or median(gaps) == pytest.approx(median(wrote), abs=GAP / 10)


def test_every_request_is_counted_once(null: Null, crew: Crew) -> None:
    measured = load(null, crew, streams=6, requests=20)

    assert (measured.spoiled, measured.stopped, measured.errors) == ("", "requests", [])
    assert (len(measured.samples), len(null.truth())) == (20, 20)
    assert {name for name in measured.client if " of " in name} == {
        "cpu-share of worker 1",
        "cpu-share of worker 2",
    }


def test_a_bound_is_decided_early_by_the_records_of_both(null: Null, crew: Crew) -> None:
    measured = load(null, crew, streams=6, seconds=6.0, goals=(Goal("decode-tok-s", floor=1.0),))

    assert (measured.spoiled, measured.stopped) == ("", "decided")
    assert measured.seconds < 6.0
    assert len(measured.samples) == len(null.truth())


def test_both_workers_share_one_time(null: Null, crew: Crew) -> None:
    measured = load(null, crew, streams=6, requests=18)

    assert apart(measured, null.truth()) <= LATE


#: A worker on a machine whose clock is 5000 s ahead of ours.
AHEAD = """
import sys, time
real = time.perf_counter
time.perf_counter = lambda: real() + 5000.0
from pytest_vllm.measure.swarm.__main__ import main
sys.exit(main())
"""


def test_a_worker_of_another_clock_has_its_place_in_the_same_time(null: Null) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = address_of(free)
    with subprocess.Popen([sys.executable, "-c", AHEAD, address], stderr=subprocess.DEVNULL) as foreign:
        with Crew(1, elsewhere=1, address=address) as both:
            measured = load(null, both, rate=60.0, requests=30)
        status = foreign.wait(10)

    assert (measured.spoiled, status) == ("", 0)
    wanted = list(islice(Script(Workload(rate=60.0), "").arrivals(), 30))
    assert sorted(one.intended for one in measured.samples) == pytest.approx(wanted, abs=1e-6)
    assert apart(measured, null.truth()) <= LATE


def test_a_rate_that_is_shared_keeps_its_arrivals(null: Null, crew: Crew) -> None:
    measured = load(null, crew, rate=60.0, requests=31)

    wanted = list(islice(Script(Workload(rate=60.0), "").arrivals(), 31))
    assert sorted(one.intended for one in measured.samples) == pytest.approx(wanted, abs=1e-6)
    assert all(one.sent >= one.intended for one in measured.samples)
    assert apart(measured, null.truth()) <= LATE


@pytest.mark.parametrize("clients", [1, 2])
def test_one_process_and_two_workers_find_what_the_server_did(null: Null, crew: Crew, clients: int) -> None:
    measured = load(null, crew if clients == 2 else None, streams=4, seconds=0.8)

    rows = null.truth()
    wrong = [
        (one.deltas[-1] - one.deltas[0]) - (row["written"][-1] - row["written"][0])
        for one, row in zip(measured.samples, rows, strict=True)
    ]
    assert median(map(abs, wrong)) <= LATE
    assert measured.doubt("decode-tok-s") == ""


def test_a_server_that_is_not_there_is_told(crew: Crew, null: Null) -> None:
    from dataclasses import replace

    measured = perform("swarm", Workload(), replace(null.server, url="http://127.0.0.1:9"), crew=crew)

    assert measured.stopped.startswith("the server cannot be reached")
    assert load(null, crew, streams=2, requests=4).errors == []
