"""How a load is shared out, and how the clocks of its workers are told apart."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_vllm.measure.swarm.clocks import Offset, offset_of, uncertainty
from pytest_vllm.measure.swarm.spread import shares
from pytest_vllm.measure.workload import Kind, Prompts, Script, Workload

USERS = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any)


@given(USERS, st.integers(0, 200), st.booleans())
def test_all_requests_are_shared_out_and_none_twice(users: list[int], requests: int, rate: bool) -> None:
    parts = shares(Workload(requests=requests, rate=1.0 if rate else None), users)

    assert sum(part.requests or 0 for part in parts) == requests
    assert [part.streams for part in parts] == users
    streams = [part.before + number for part in parts for number in range(part.streams)]
    assert streams == list(range(sum(users)))


def test_a_load_without_an_end_has_none_in_any_part() -> None:
    assert [part.requests for part in shares(Workload(streams=3), [2, 1])] == [None, None]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_workers_take_turns_in_one_list(count: int) -> None:
    workload = Workload(rate=5.0)
    whole = Script(workload, "salt")
    wanted = [whole.next().prompt for _ in range(6)]
    scripts = [Script(workload, "salt", {}, (rank, count)) for rank in range(count)]

    assert [scripts[number % count].next().prompt for number in range(6)] == wanted
    times = [list(islice(one.arrivals(), 3)) for one in scripts]
    assert [at for turn in zip(*times, strict=True) for at in turn] == list(
        islice(whole.arrivals(), 3 * count)
    )


def test_a_worker_needs_no_file_of_prompts_on_its_own_machine() -> None:
    workload = Workload(kinds=(Kind("said", Prompts(file="elsewhere.txt")),))

    assert Script(workload, "salt", {"said": ["How are you?"]}).next().prompt == "[salt1] How are you?"


@given(st.floats(-1e6, 1e6), st.lists(st.tuples(st.floats(0, 0.1), st.floats(0, 0.1)), min_size=1))
def test_an_offset_is_as_exact_as_it_says(ahead: float, ways: list[tuple[float, float]]) -> None:
    rounds = [(float(at), at + there + ahead, at + there + back) for at, (there, back) in enumerate(ways)]
    found = offset_of(rounds)

    assert abs(found.ahead - ahead) <= (found.error or min(map(sum, ways))) + 1e-8


def test_one_clock_has_no_offset() -> None:
    assert offset_of([(0.0, 0.0002, 0.0003), (1.0, 1.004, 1.005)]) == Offset(0.0, 0.0)


def test_the_quickest_round_counts() -> None:
    found = offset_of([(0.0, 90.7, 1.0), (2.0, 92.001, 2.002)])

    assert (found.ahead, found.error) == pytest.approx((90.0, 0.001))


def test_a_clock_that_runs_away_is_uncertain() -> None:
    assert uncertainty(Offset(90.0, 0.001), Offset(90.2, 0.002)) == pytest.approx(0.202)
