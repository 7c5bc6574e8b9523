"""A sample of the draws of `python -m tests.defects.false_alarms`: no healthy server is accused."""

from __future__ import annotations

import pytest

from pytest_vllm.sim.arguments import known_flags
from pytest_vllm.sim.versions import Version
from tests.defects.false_alarms import profile_of, run_all
from tests.defects.false_alarms_drawing import DIMENSIONS, draw, each_alone, versions

DRAWN, JUDGED = 200, 6


def test_a_seed_draws_the_same_server_again() -> None:
    assert draw(7) == draw(7)
    assert len({str(draw(seed)) for seed in range(DRAWN)}) == DRAWN


def test_every_dimension_and_most_versions_are_drawn() -> None:
    drawn = [draw(seed) for seed in range(DRAWN)]
    given = {name for one in drawn for name in one.args}
    options = {name for row in DIMENSIONS.values() for option in row for name in option.args}

    assert given == options
    assert len({one.version for one in drawn}) > 0.9 * len(versions())
    assert {one.keyed for one in drawn} == {True, False}
    assert {one.args.get("max-model-len") for one in drawn} >= {256, 512, 1024, 2048, 131072}


@pytest.mark.parametrize("version", ["0.10.0", "0.20.0", "0.32.0"])
def test_no_version_is_given_a_flag_that_it_does_not_know(version: str) -> None:
    known = known_flags(Version(version)).keys()

    for one in each_alone(version):
        given = profile_of(one).server.args
        assert {f"--{name}" for name in given} <= known, str(one)


@pytest.mark.matrix
def test_a_healthy_server_is_not_accused() -> None:
    alarms = run_all([draw(seed) for seed in range(JUDGED)])

    assert {str(one.draw): one.failed for one in alarms if one.failed} == {}
    assert {str(one.draw): one.undecided for one in alarms if one.undecided} == {}
    assert min(one.decided for one in alarms) > 50
