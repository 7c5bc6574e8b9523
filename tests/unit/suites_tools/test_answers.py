"""One choice, read the same way whether it was streamed or not."""

from __future__ import annotations

import pytest

from pytest_vllm.wire.recording import Undecided
from suites.reasoning.thoughts import said
from suites.tools.answers import answer, errors
from tests.unit.suites_tools.answers import call, piece, stream, whole


def test_a_stream_joins_to_the_whole_answer() -> None:
    streamed = answer(
        stream(
            {"role": "assistant", "content": ""},
            {"reasoning": "Hm"},
            {"reasoning": "m."},
            {"content": "One moment."},
            piece(0, name="f", id="a", type="function"),
            piece(0, '{"x": '),
            piece(1, "{}", name="g", id="b", type="function"),
            piece(0, "1}"),
            usage={"completion_tokens": 9},
        )
    )
    calls = [call("f", '{"x": 1}', "a"), call("g", "{}", "b")]
    told = answer(
        whole({"content": "One moment.", "reasoning": "Hmm.", "tool_calls": calls}, completion_tokens=9)
    )

    assert (streamed.content, streamed.reasoning, streamed.calls, streamed.finish, streamed.spent) == (
        told.content,
        told.reasoning,
        told.calls,
        told.finish,
        told.spent,
    )


def test_the_older_key_is_read_too() -> None:
    assert answer(whole({"content": None, "reasoning_content": "Hm."}, "stop")).reasoning == "Hm."
    assert said(stream({"reasoning_content": "Hm."}, finish="stop")).keys == {"reasoning_content"}


def test_an_answer_that_says_nothing_is_read() -> None:
    empty = answer(whole({"content": None}, "stop"))

    assert (empty.content, empty.calls, empty.spent, empty.complete) == ("", (), None, True)


def test_a_cut_answer_is_not_complete() -> None:
    assert not answer(whole({"content": ""}, "length")).complete


def test_an_error_in_a_stream_is_seen() -> None:
    broken = stream({"content": "a"})
    event = b'data: {"error": {"message": "list index out of range"}}\n\n'
    broken = broken.with_response(chunks=(*broken.chunks, (1.0, event)))

    assert errors(broken) == ["{'message': 'list index out of range'}"]


def test_a_refused_request_accuses_nobody_twice() -> None:
    with pytest.raises(Undecided):
        answer(whole({}).with_response(status=500))
