"""Every check is broken by some defect, every defect is caught, and caught where it lies.

A run of its own, for its length: `pytest tests/defects -m matrix`, or `python -m tests.defects.matrix`.
"""

from __future__ import annotations

import pytest

from pytest_vllm.sim.defects.registry import all_defects
from tests.defects.matrix import ELSEWHERE, check_ids, run
from tests.defects.outcome import Outcome, killers
from tests.defects.promises import MOST_UNRELATED, broken


@pytest.mark.matrix
def test_every_promise_of_the_matrix_holds() -> None:
    outcomes = run([name for name, defect in all_defects().items() if defect.area not in ELSEWHERE])

    assert list(broken(outcomes, killers(outcomes, check_ids()))) == []


def outcome(**changes: object) -> Outcome:
    facts = {
        "defect": "chat.x",
        "area": "chat",
        "failed": ("chat.a",),
        "areas": ("chat",),
        "expected": ("chat.a",),
    }
    return Outcome(**{**facts, **changes})  # type: ignore[arg-type]


def test_nothing_is_told_of_a_defect_that_is_caught_where_it_lies() -> None:
    assert list(broken([outcome()], {"chat.a": ["chat.x"]})) == []


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (outcome(failed=()), "chat.x is not caught"),
        (outcome(failed=("chat.b",)), "chat.x is caught by none of the checks that it names: chat.a"),
        (
            outcome(unrelated=tuple("abcdefghijk")),
            f"chat.x breaks {MOST_UNRELATED + 1} checks of other areas",
        ),
        (outcome(causes=2), "one defect has 2 causes in the median"),
        (
            outcome(failed=("tools.b", "chat.a"), areas=("tools", "chat")),
            "the verdict names another area first for 1 defects: chat.x",
        ),
    ],
)
def test_a_promise_that_does_not_hold_is_told(one: Outcome, told: str) -> None:
    lines = list(broken([one], {"chat.a": ["chat.x"]}))

    assert any(line.startswith(told) for line in lines), lines


def test_a_check_that_nothing_breaks_is_told() -> None:
    assert list(broken([outcome()], {"chat.a": ["chat.x"], "chat.b": []})) == ["no defect breaks chat.b"]


@pytest.mark.parametrize(
    ("one", "unsettled"),
    [
        (outcome(failed=(), open={"chat.a": "this machine was busy"}), True),
        (outcome(open={"chat.a[two]": "this machine was busy"}), False),
        (outcome(failed=(), open={"chat.b": "this machine was busy"}), True),
        (outcome(failed=("chat.b",), open={"chat.c": "this machine was busy"}), False),
        (outcome(failed=()), False),
    ],
)
def test_only_a_defect_that_is_undecided_is_judged_again(one: Outcome, unsettled: bool) -> None:
    assert one.unsettled is unsettled
