"""Every check is broken by some defect, every defect is caught, and caught where it lies.

A run of its own, for its length: `pytest tests/defects -m matrix`.
"""

from __future__ import annotations

import pytest

from pytest_vllm.sim.defects.registry import all_defects
from tests.defects.matrix import ELSEWHERE, MOST_UNRELATED, check_ids, run
from tests.defects.outcome import Outcome, killers

DIAGNOSED = 0.9
pytestmark = pytest.mark.matrix


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return run([name for name, defect in all_defects().items() if defect.area not in ELSEWHERE])


@pytest.fixture(scope="module")
def rewritten(outcomes: list[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if not outcome.live]


def test_every_rewriting_defect_is_caught(rewritten: list[Outcome]) -> None:
    assert missed(rewritten) == []


def test_a_rewriting_defect_breaks_few_checks_of_other_areas(rewritten: list[Outcome]) -> None:
    assert wide(rewritten) == {}


def test_a_rewriting_defect_is_diagnosed(rewritten: list[Outcome]) -> None:
    astray = [outcome.defect for outcome in rewritten if not outcome.diagnosed]

    assert len(astray) <= (1 - DIAGNOSED) * len(rewritten), f"the verdict points elsewhere for {astray}"


def test_every_defect_is_caught(outcomes: list[Outcome]) -> None:
    assert missed(outcomes) == []


def test_every_defect_is_caught_by_the_checks_it_names(outcomes: list[Outcome]) -> None:
    named = [outcome for outcome in outcomes if not outcome.boot]

    assert {o.defect: o.expected for o in named if not set(o.expected) & _ids(o)} == {}


def test_every_check_has_a_killer(outcomes: list[Outcome]) -> None:
    assert [check for check, names in killers(outcomes, check_ids()).items() if not names] == []


def test_a_defect_breaks_few_checks_of_other_areas(outcomes: list[Outcome]) -> None:
    assert wide(outcomes) == {}


def test_the_first_failing_check_names_the_right_area(outcomes: list[Outcome]) -> None:
    astray = [outcome.defect for outcome in outcomes if not outcome.diagnosed]

    assert len(astray) <= (1 - DIAGNOSED) * len(outcomes), f"the verdict points elsewhere for {astray}"


def missed(outcomes: list[Outcome]) -> list[str]:
    return [outcome.defect for outcome in outcomes if not outcome.caught]


def wide(outcomes: list[Outcome]) -> dict[str, tuple[str, ...]]:
    return {one.defect: one.unrelated for one in outcomes if len(one.unrelated) > MOST_UNRELATED}


def _ids(outcome: Outcome) -> set[str]:
    return {key.partition("[")[0] for key in (*outcome.failed, *outcome.advisory)}
