"""Fields, events and outcomes: what breaks clients is told, what a model happens to say is not."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.report.compare.difference import Weight
from pytest_vllm.report.compare.shapes import differences
from pytest_vllm.wire.failure import Failure
from tests.unit.report.compare.runs import answer, chat, part_of, stream

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_vllm.report.compare.difference import Difference
    from pytest_vllm.wire.recording import Recording


def found(before: Iterable[Recording], after: Iterable[Recording]) -> list[Difference]:
    return list(differences(part_of(before)["observed"], part_of(after)["observed"]))


def heavy(before: Iterable[Recording], after: Iterable[Recording]) -> list[Difference]:
    return [one for one in found(before, after) if one.weight is not Weight.INFO]


def chats(number: int = 6, **message: Any) -> list[Recording]:
    return [chat(f"a.c{n}", "x", **message) for n in range(number)]


def test_a_renamed_field_breaks_clients_and_names_both() -> None:
    (one,) = heavy(chats(reasoning_content="so"), chats(reasoning="so"))

    assert (one.weight, one.area) == (Weight.BREAKS, "fields")
    assert "'reasoning_content' became 'reasoning'" in one.what
    assert "get nothing" in one.means


def test_a_field_of_every_answer_that_is_gone_breaks_clients() -> None:
    (one,) = heavy(chats(refusal=None), chats())

    assert (one.weight, one.before, one.after) == (Weight.BREAKS, "in 6 of 6 answers", "")


def test_a_field_that_one_answer_of_many_had_may_be_gone_by_chance() -> None:
    assert heavy([*chats(), chat("a.other", "x", tool_calls=[{"id": "c"}])], chats(7)) == []


def test_elements_of_a_list_that_is_empty_this_time_are_not_gone() -> None:
    called = [*chats(tool_calls=[]), chat("a.other", "x", tool_calls=[{"id": "c", "type": "function"}])]

    assert heavy(called, chats(7, tool_calls=[])) == []


def test_a_new_field_is_for_information() -> None:
    (one,) = found(chats(), chats(annotations=None))

    assert (one.weight, one.before) == (Weight.INFO, "")


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ({"n": 1}, {"n": "1"}, "type of .n"),
        ({"n": 1}, {"n": 1.5}, "type of .n"),
        ({"n": {}}, {"n": []}, "type of .n"),
    ],
)
def test_another_type_breaks_clients(before: Any, after: Any, what: str) -> None:
    one = heavy([answer("a.x", before)], [answer("a.x", after)])

    assert [(d.weight, d.what.startswith(what)) for d in one] == [(Weight.BREAKS, True)]


def test_a_field_that_is_always_empty_now_breaks_clients() -> None:
    (one,) = heavy(chats(reasoning="so"), chats(reasoning=None))

    assert one.weight is Weight.BREAKS
    assert "empty" in one.means


def test_another_object_name_breaks_clients() -> None:
    (one,) = heavy([answer("a.x", {"object": "list"})], [answer("a.x", {"object": "page"})])

    assert (one.weight, one.before, one.after) == (Weight.BREAKS, "list", "page")


def test_events_in_another_order_are_behaviour() -> None:
    said, thought = {"content": "x"}, {"reasoning": "so"}
    (one,) = heavy([stream("a.s", thought, said)], [stream("a.s", said, thought)])

    assert (one.weight, one.area) == (Weight.BEHAVIOUR, "events")


def test_an_order_that_varied_before_says_nothing() -> None:
    said, thought = {"content": "x"}, {"reasoning": "so"}
    both = [stream("a.s", thought, said), stream("a.t", said, thought)]

    assert heavy(both, both[:1]) == []


def test_a_stream_without_its_end_mark_breaks_clients() -> None:
    (one,) = heavy([stream("a.s", {"content": "x"})], [stream("a.s", {"content": "x"}, done=False)])

    assert (one.weight, one.after) == (Weight.BREAKS, "never comes")


@pytest.mark.parametrize(
    ("was", "now", "weight", "means"),
    [
        (200, 400, Weight.BREAKS, "requests that were served are refused"),
        (200, 500, Weight.BREAKS, "requests that were served fail"),
        (200, None, Weight.BREAKS, "requests that were served fail"),
        (400, 200, Weight.BEHAVIOUR, "requests that were refused are served"),
        (500, 200, Weight.BEHAVIOUR, "requests that failed are served"),
        (None, 200, Weight.BEHAVIOUR, "requests that failed are served"),
        (400, 500, Weight.BEHAVIOUR, "a refusal became a failure: clients that try again on failures do so"),
        (404, 405, Weight.BEHAVIOUR, "clients that tell refusals apart by their status take another way"),
    ],
)
def test_requests_with_another_outcome(was: int | None, now: int | None, weight: Weight, means: str) -> None:
    one, other = ([outcome(f"a.r[{n}]", status) for n in range(3)] for status in (was, now))
    (told,) = [d for d in found(one, other) if d.area == "requests"]

    names = [str(status or "no answer") for status in (was, now)]
    assert (told.weight, [told.before, told.after], told.means) == (weight, names, means)
    assert told.what.startswith("3 requests")


@pytest.mark.parametrize(
    "why", [Failure.UNFIT, Failure.NOT_SENT, Failure.HELD, Failure.STOPPED, Failure.GIVEN_UP]
)
def test_a_request_that_a_server_was_not_asked_says_nothing(why: Failure) -> None:
    """The version lacks what it is for, or the asking machine was busy; both ways."""
    unasked = [outcome("a.r[1]", None, why), outcome("a.r[2]", 200)]
    served = [outcome("a.r[1]", 200), outcome("a.r[2]", 200)]

    assert heavy(unasked, served) == heavy(served, unasked) == []


def outcome(key: str, status: int | None, why: Failure = Failure.TIMEOUT_TOTAL) -> Recording:
    """An answer with this status, or one that did not come."""
    body: dict[str, Any] = {"error": {}} if (status or 0) >= 400 else {}
    return answer(key, body, status=status, failure=None if status else why, error="" if status else "late")


def test_a_request_that_the_other_run_did_not_send_says_nothing() -> None:
    assert found([answer("a.r", {"error": {}}, status=400)], [answer("b.r", {})]) == []


def test_ids_times_texts_and_the_order_of_requests_are_not_differences() -> None:
    """A against A: everything that changes from run to run of one server."""
    drawn = random.Random(1)  # noqa: S311 - a test's own

    def once() -> list[Recording]:
        rows = [chat(f"a.c{n}", f"text {drawn.random()}", id_=f"{drawn.random()}") for n in range(20)]
        rows += [
            stream(f"a.s{n}", {"role": "assistant"}, *[{"content": "x"}] * drawn.randint(1, 9))
            for n in range(9)
        ]
        rows = [row.with_response(sent=drawn.random(), seconds=drawn.random()) for row in rows]
        drawn.shuffle(rows)
        return rows

    assert found(once(), once()) == []
