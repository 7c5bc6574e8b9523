"""A sample of broken simulators, each through the gate as a person runs it: `pytest … --vllm-defect=NAME`."""

from __future__ import annotations

import pytest

from tests.defects.gates import Gate, gate, sample

RUNS = 8
DIAGNOSED = 0.9
pytestmark = pytest.mark.matrix


@pytest.fixture(scope="module")
def gates() -> list[Gate]:
    return [gate(defect) for defect in sample(RUNS)]


def test_the_sample_holds_every_class() -> None:
    defects = sample(RUNS)

    assert len({one.name for one in defects}) == RUNS
    assert [one.area == "boot" for one in defects[:3]] == [True, False, False]
    assert [one.rewrites for one in defects[:3]] == [False, False, True]


def test_the_gate_does_not_say_go(gates: list[Gate]) -> None:
    assert {one.defect.name: one.exit for one in gates if not one.caught} == {}


def test_the_first_failure_names_the_area(gates: list[Gate]) -> None:
    astray = {one.defect.name: one.first for one in gates if not one.diagnosed}

    assert len(astray) <= (1 - DIAGNOSED) * len(gates) + 1, f"the first failure is elsewhere: {astray}"
