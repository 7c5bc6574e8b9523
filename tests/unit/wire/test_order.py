"""A plan is sent in an order that keeps dependencies and long chains short."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_vllm.declare.exchanges import ExchangeSpec
from pytest_vllm.run.order import Queue, longest_chain, stages
from pytest_vllm.run.plan import Planned
from pytest_vllm.wire.recording import Request

GET = Request("GET", "/")


def planned(key: str, *after: str, alone: bool = False, metrics: bool = False, crowd: str = "") -> Planned:
    spec = ExchangeSpec(key, lambda: GET, alone=alone, metrics=metrics, crowd=crowd)
    return Planned(key, spec, {}, {f"p{number}": name for number, name in enumerate(after)})


def keys(plan: list[Planned]) -> list[str]:
    return [one.key for one in plan]


def drained(plan: list[Planned], tokens: dict[str, int]) -> list[str]:
    """The order in which one sender at a time would send."""
    queue = Queue(plan)
    sent: list[str] = []
    freed = queue.free()
    while freed or queue:
        for one in freed:
            queue.push(one, GET, tokens.get(one.key, 0))
        sent.append(queue.pop()[0].key)
        freed = queue.free(sent[-1])
    return sent


def test_what_wants_the_server_for_itself_comes_last_and_takes_its_followers_along() -> None:
    plan = [
        planned("m", metrics=True),
        planned("a"),
        planned("after-m", "m"),
        planned("z", alone=True),
        planned("b", "a"),
    ]
    together, crowds, one_by_one = stages(plan)

    assert keys(together) == ["a", "b"]
    assert not crowds
    assert keys(one_by_one) == ["m", "after-m", "z"]


def test_a_crowd_is_a_stage_of_its_own_and_what_comes_after_it_runs_by_itself() -> None:
    plan = [
        planned("z", alone=True),
        planned("c", "a", crowd="first"),
        planned("d", crowd="second"),
        planned("after-c", "c"),
        planned("e", crowd="first"),
        planned("late", "z", crowd="first"),
        planned("a"),
    ]
    together, crowds, one_by_one = stages(plan)

    assert keys(together) == ["a"]
    assert [keys(crowd) for crowd in crowds] == [["c", "e"], ["d"]]
    assert keys(one_by_one) == ["z", "after-c", "late"]


def test_the_longest_chain_goes_first_then_the_longest_answer() -> None:
    plan = [
        planned("short"),
        planned("wordy"),
        planned("head"),
        planned("middle", "head"),
        planned("tail", "middle"),
    ]

    assert drained(plan, {"wordy": 512, "short": 4}) == ["head", "middle", "wordy", "short", "tail"]


def test_equals_keep_the_order_of_the_plan() -> None:
    assert drained([planned("b"), planned("a"), planned("c")], {}) == ["b", "a", "c"]


def test_a_cycle_is_refused_with_its_members() -> None:
    with pytest.raises(ValueError, match="a -> b -> c -> a"):
        stages([planned("a", "b"), planned("b", "c"), planned("c", "a")])


def test_an_unknown_dependency_is_refused() -> None:
    with pytest.raises(ValueError, match="a comes after b, which is neither planned nor recorded"):
        stages([planned("a", "b")])
    assert keys(stages([planned("a", "b")], ["b"])[0]) == ["a"]


def test_a_key_is_planned_once() -> None:
    with pytest.raises(ValueError, match="twice"):
        stages([planned("a"), planned("a")])


def test_the_longest_chain_in_seconds() -> None:
    plan = [planned("a"), planned("b", "a"), planned("c")]

    assert longest_chain(plan, {"a": 1.0, "b": 2.0, "c": 2.5}) == pytest.approx(3.0)
    assert longest_chain([], {}) == 0.0


@given(st.lists(st.tuples(st.sets(st.integers(0, 30)), st.booleans()), max_size=20), st.randoms())
def test_nothing_is_sent_before_what_it_needs(
    rows: list[tuple[set[int], bool]], random: st.DataObject
) -> None:
    plan = [
        planned(str(number), *(str(other) for other in sorted(after) if other < number), alone=alone)
        for number, (after, alone) in enumerate(rows)
    ]
    shuffled = list(plan)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    together, _, one_by_one = stages(shuffled)
    sent = drained(together, {}) + keys(one_by_one)

    assert sorted(sent) == sorted(keys(plan))
    for one in plan:
        assert all(sent.index(key) < sent.index(one.key) for key in one.after.values())
