"""What is a whole answer: bones, ends, and what was asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_vllm.declare.answers import error_in
from pytest_vllm.declare.wholeness import forbidden, misread, unwhole
from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import Recording, Request

CHAT = "/v1/chat/completions"
USAGE = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
CHOICE = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}
WHOLE = {
    "id": "c",
    "object": "chat.completion",
    "model": "m",
    "created": 1,
    "choices": [CHOICE],
    "usage": USAGE,
}
PIECE = {"id": "c", "object": "chat.completion.chunk", "model": "m", "created": 1}
FLAT = {"object": "error", "message": "no", "code": 400}
SSE, MARK = "text/event-stream", "data: [DONE]\n\n"


def answer(body: Any, path: str = CHAT, status: int = 200, **request: Any) -> Recording:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    asked = Request("POST", path, json={"model": "m", **request})
    return Recording("chat.one", asked, status, chunks=((0.1, raw),))


def stream(
    *finish: str | None, mark: str = MARK, path: str = CHAT, kind: str = "text/event-stream"
) -> Recording:
    choices = [{"index": 0, "delta": {"content": "a"}, "finish_reason": reason} for reason in finish]
    text = "".join(f"data: {json.dumps({**PIECE, 'choices': [one]})}\n\n" for one in choices) + mark
    asked = Request("POST", path, json={"model": "m", "stream": True})
    return Recording("stream.one", asked, 200, (("content-type", kind),), ((0.1, text.encode()),))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (WHOLE, ""),
        ({**WHOLE, "choices": []}, "choices is empty"),
        ({**WHOLE, "choices": None}, "choices is null, not a list"),
        ({**WHOLE, "choices": [1]}, "choices[0] is a number ('1'), not an object"),
        ({**WHOLE, "choices": [{**CHOICE, "finish_reason": None}]}, "choices[0].finish_reason is null"),
        ({**WHOLE, "choices": [{**CHOICE, "message": 5}]}, "choices[0].message is a number ('5')"),
        ({**WHOLE, "usage": {**USAGE, "total_tokens": True}}, "usage.total_tokens is a truth value"),
        ([], "the body is a list, not an object"),
        (b"<html>", "the body is not JSON"),
        (b"", "the body is not JSON"),
    ],
)  # fmt: skip
def test_a_body_has_its_bones(body: Any, said: str) -> None:
    """The path and the value are named."""
    fault = unwhole(answer(body))

    assert fault.startswith(said)
    assert bool(fault) == bool(said)


@pytest.mark.parametrize(
    ("recording", "said"),
    [
        (stream(None, "stop"), ""),
        (stream(None, None), "choice 0 ends without a finish_reason"),
        (stream(None, "stop", mark=""), "the stream of 2 events ends without [DONE]"),
        (stream(mark=MARK), "the stream holds no event"),
        (stream("stop", mark="data: [1]\n\n" + MARK), "event 1: the body is a list, not an object"),
        (stream("stop", mark="data: nonsense\n\n"), "an event is not JSON"),
        (stream("stop", mark=MARK + "data: {"), "the stream ends within an event"),
        (stream("stop", kind="application/json"), "a stream was asked for"),
        (stream(mark='data: {"error": {"message": "no"}}\n\n'), "event 0 is an error"),
        (stream(mark='data: {"type": "message_start"}\n\n', path="/v1/messages"), "the stream of 1 events"),
    ],
)  # fmt: skip
def test_a_stream_has_its_end(recording: Recording, said: str) -> None:
    """On every route, whatever marks the end there."""
    fault = unwhole(recording)

    assert fault.startswith(said)
    assert bool(fault) == bool(said)


def test_what_the_server_did_not_end_is_not_judged() -> None:
    """We left, the connection broke, or it was refused: others say so."""
    cut = stream(None, mark="")

    assert not unwhole(cut.with_response(aborted=True))
    assert not unwhole(cut.with_response(failure=Failure.RESET))
    assert not unwhole(answer({"error": "no"}, status=500))
    assert not unwhole(answer(b"anything", path="/somewhere/else"))


def test_what_was_asked_for_is_there() -> None:
    """Log probabilities that are null leave a check nothing to read."""
    assert unwhole(answer(WHOLE, logprobs=True)) == "choice 0 has no logprobs, which were asked for"
    assert not unwhole(answer(WHOLE, logprobs=False))


def test_a_crash_is_put_down_to_the_answer_that_its_schema_forbids() -> None:
    """With its key, its path and the place of the crash; not a fault of our own."""
    broken = [answer(WHOLE), answer({**WHOLE, "choices": []})]

    said = misread(IndexError("list index out of range"), "test_x.py:7", broken)

    assert (
        said
        == "chat.one can't be judged, its answer is malformed: choices is empty (IndexError at test_x.py:7)"
    )
    assert not misread(IndexError("x"), "test_x.py:7", broken[:1])
    assert not misread(NameError("x"), "test_x.py:7", broken)


def test_what_the_connection_cut_is_not_read_for_a_crash_either() -> None:
    """Its half of a body is no JSON, and asked for log probabilities all the same."""
    cut = answer(b'{"id": ', logprobs=True).with_response(failure=Failure.TRUNCATED)

    assert not misread(IndexError("x"), "test_x.py:7", [cut])


def test_a_refusal_has_one_of_its_envelopes() -> None:
    """What a crash on an error's body is put down to."""
    good = {"error": {"message": "m", "type": "t", "param": None, "code": 400}}

    assert not forbidden(answer(good, status=400))
    assert not forbidden(answer({"detail": "Not Found"}, status=404))
    assert forbidden(answer({"error": "text"}, status=400)) == "error is a text ('text'), not an object"
    assert forbidden(answer(b"Internal Server Error", status=500)).startswith("the body is not JSON")


@pytest.mark.parametrize(
    ("value", "carried"),
    [
        ({"error": {"message": "no"}}, {"message": "no"}),
        (FLAT, FLAT),
        ({"type": "error", "code": "x"}, {"type": "error", "code": "x"}),
        ({"object": "chat.completion.chunk", "error": None}, None),
        ([{"error": 1}], None),
    ],
)
def test_an_error_is_found_wrapped_and_flat(value: Any, carried: Any) -> None:
    """Until 0.10.0 the object itself is the error."""
    assert (error_in(value) or None) == carried


def test_a_stream_that_a_flat_error_ends_is_no_malformed_answer() -> None:
    """A refusal that comes as an event is judged by what it says, not by the bones of a chunk."""
    refused = 'data: {"object":"error","message":"not with drafts","code":400}\n\n' + MARK
    asked = Request("POST", CHAT, json={"model": "m", "stream": True}, expect=None)
    answered = Recording("pairs.one", asked, 200, (("content-type", SSE),), ((0.1, refused.encode()),))

    assert not unwhole(answered)
