"""No bundled check crashes, whatever a server answers: broken is a failure or undecided, by name."""

from __future__ import annotations

import pytest

from pytest_vllm.decide.verdict import Answer, decide
from tests.defects import matrix
from tests.defects.crashes import crashes, mutilated
from tests.defects.judging import judge_all


@pytest.mark.parametrize("seed", range(3))
def test_no_check_crashes_on_mutilated_answers(seed: int) -> None:
    """Fields removed, emptied, retyped; bodies that are no JSON; streams cut, torn, without an end."""
    assert crashes(mutilated(matrix.healthy(), seed)) == []


def test_the_unharmed_crash_nobody_and_the_mutilated_are_no_go() -> None:
    """The same machinery says GO of what was not touched, so that the test above can fail."""
    healthy = matrix.healthy()

    assert decide(judge_all(matrix.recorded_only(), healthy)).answer is Answer.GO
    assert decide(judge_all(matrix.recorded_only(), mutilated(healthy, 0))).answer is Answer.NO_GO
