"""What is drawn comes from the seed; what fails is asked again and made as simple as it can be."""

from __future__ import annotations

from itertools import count

import pytest

from pytest_vllm.run.search import FIRST, REPEATED, Search
from tests.unit.explore.fakes import Fake


def searched(fake: Fake, seed: int = 1, rounds: int = 12) -> tuple[Search, list[str]]:
    """A search whose clock goes on a second with each look at it."""
    said: list[str] = []
    made = Search(fake.asker(), seed, float(rounds * 4), said.append)
    made.run()
    return made, said


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr("pytest_vllm.run.search.time.monotonic", lambda: float(next(ticks)) / 10)


def test_a_healthy_server_is_accused_of_nothing() -> None:
    made, said = searched(Fake(lambda _: 200))

    assert made.failures == []
    assert said == []
    assert made.drawn > FIRST


def test_a_seed_draws_the_same_requests() -> None:
    one, other, third = (Fake(lambda _: 200) for _ in range(3))
    for fake, seed in ((one, 5), (other, 5), (third, 6)):
        searched(fake, seed)

    assert one.asked[:40] == other.asked[:40]
    assert one.asked[:40] != third.asked[:40]


def test_a_failure_is_made_as_simple_as_it_can_be() -> None:
    made, said = searched(Fake(lambda shape: 500 if shape["a"] > 3 and shape["c"] > 1 else 200))

    (failure,) = made.failures
    assert failure.trial.shape == {"a": 4, "b": 0, "c": 2}
    assert (failure.again, failure.repeated) == (REPEATED, REPEATED)
    assert "failed 3 of 3 times more" in said[0]


def test_what_fails_once_is_not_made_simpler() -> None:
    seen: list[object] = []

    def status(shape: object) -> int:
        seen.append(shape)
        return 500 if len(seen) == 3 else 200

    made, said = searched(Fake(status))

    assert [(one.again, one.repeated) for one in made.failures] == [(0, REPEATED)]
    assert "was not seen again" in said[0]


def test_a_candidate_that_fails_otherwise_is_not_taken() -> None:
    """A simpler request that is refused is another fault than a crash."""

    def status(shape: dict[str, int]) -> int:
        return 500 if shape["a"] > 3 and shape["b"] else 400 if shape["a"] > 3 else 200

    made, _ = searched(Fake(status))  # type: ignore[arg-type]
    crash = next(one for one in made.failures if one.trial.rules == {"status-500"})

    assert crash.trial.shape == {"a": 4, "b": 1, "c": 0}


def test_faults_of_one_kind_are_followed_up_once() -> None:
    made, _ = searched(Fake(lambda shape: 500 if shape["a"] else 200))

    assert len(made.failures) == 1


def test_what_was_asked_when_the_server_was_gone_is_no_finding_without_a_broken_answer() -> None:
    fake = Fake(lambda _: 200)
    fake.stops_after = 10

    made, _ = searched(fake)

    assert made.asker.stopped == "it is gone"
    assert made.failures == []
