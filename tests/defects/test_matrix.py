"""Every check is broken by some defect, every defect is caught, and caught where it lies."""

from __future__ import annotations

import pytest

from pytest_vllm.sim.defects.registry import all_defects
from tests.defects.matrix import MOST_UNRELATED, Outcome, killers, run

DIAGNOSED = 0.9


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return run(list(all_defects()))


def test_every_defect_is_caught(outcomes: list[Outcome]) -> None:
    assert [outcome.defect for outcome in outcomes if not outcome.caught] == []


def test_every_defect_is_caught_by_the_checks_it_names(outcomes: list[Outcome]) -> None:
    missed = {
        outcome.defect: sorted(set(outcome.expected) - _ids(outcome))
        for outcome in outcomes
        if not outcome.boot and not set(outcome.expected) & _ids(outcome)
    }

    assert missed == {}


def test_every_check_has_a_killer(outcomes: list[Outcome]) -> None:
    assert [check for check, names in killers(outcomes).items() if not names] == []


def test_a_defect_breaks_few_checks_of_other_areas(outcomes: list[Outcome]) -> None:
    assert {o.defect: o.unrelated for o in outcomes if len(o.unrelated) > MOST_UNRELATED} == {}


def test_the_first_failing_check_names_the_right_area(outcomes: list[Outcome]) -> None:
    astray = [outcome.defect for outcome in outcomes if not outcome.diagnosed]

    assert len(astray) <= (1 - DIAGNOSED) * len(outcomes), f"the verdict points elsewhere for {astray}"


def _ids(outcome: Outcome) -> set[str]:
    return {key.partition("[")[0] for key in (*outcome.failed, *outcome.advisory)}
