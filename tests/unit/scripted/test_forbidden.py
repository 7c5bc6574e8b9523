"""A script that a grammar forbade is nobody's fault; one that broke off for another reason is."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_vllm.wire.recording import NotRun, Recording, Request, Undecided
from suites.scripted.answers import said
from suites.scripted.forbidden import forbidden_at, sayable
from suites.scripted.rendered import message, response

SCRIPT = '<think>Hm</think><tool_call>{"text": "a </tool_call> b"}</tool_call>'
ERROR = {"message": "Internal server error", "type": "InternalServerError", "param": None, "code": 500}


def name(*pieces: str) -> str:
    """The digest of a script, as the processor tells it."""
    return hashlib.sha256("\0".join(pieces).encode()).hexdigest()[:12]


def answer(status: int, *bodies: Any, streams: bool = False, script: Any = SCRIPT) -> Recording:
    """What came for a script."""
    request = Request("POST", "/v1/chat/completions", {"vllm_xargs": {"script": script}, "stream": streams})
    texts = [f"data: {json.dumps(body)}\n\n" if streams else json.dumps(body) for body in bodies]
    return Recording("one", request, status, chunks=tuple((0.1, text.encode()) for text in texts))


def told(text: str, status: int = 200) -> Recording:
    """What the processor told."""
    request = Request("POST", "/v1/completions", {"vllm_xargs": {"forbidden": 1}}, expect=None)
    body = json.dumps({"choices": [{"index": 0, "text": text}]})
    return Recording("told", request, status, chunks=((0.1, body.encode()),))


BROKEN = answer(500, {"error": ERROR})
BROKEN_STREAM = answer(
    200,
    {"choices": [{"index": 0, "delta": {"reasoning": "Hm"}, "finish_reason": None}]},
    {"error": ERROR},
    streams=True,
)
WHOLE = answer(200, {"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]})
FORBADE = told(f"{name('another')}:3 {name(SCRIPT)}:17")


@pytest.mark.parametrize("one", [BROKEN, BROKEN_STREAM])
def test_what_the_grammar_forbade_is_not_judged(one: Recording) -> None:
    with pytest.raises(NotRun, match="never said, the server's grammar forbids its token 17: "):
        sayable(one, FORBADE)


@pytest.mark.parametrize("one", [BROKEN, BROKEN_STREAM])
@pytest.mark.parametrize(
    "about",
    [
        told("none"),
        told(f"{name('another')}:3"),
        told(f"{name(*SCRIPT)}:17"),  # the same text in other tokens
        told("The capital of France is Paris."),  # an engine that does not know the question
        told(f"{name(SCRIPT)}:17", status=404),
    ],
)
def test_what_breaks_off_without_a_grammar_is_judged(one: Recording, about: Recording) -> None:
    sayable(one, about)

    assert said(one).errors


def test_what_every_model_writes_must_be_allowed() -> None:
    with pytest.raises(AssertionError, match="every model of this parser writes so, and "):
        sayable(BROKEN, FORBADE, may_be=False)


@pytest.mark.parametrize(
    ("body", "told"),
    [({"error": ERROR}, "'Internal server error'"), ({"detail": 1}, """'{"detail": 1}'"""), ("x", "'\"x\"'")],
)
def test_a_refusal_is_told_in_its_own_words(body: Any, told: str) -> None:
    assert said(answer(500, body)).errors == [f"answered with 500: {told}"]


def test_an_answer_that_came_is_judged_whatever_is_told() -> None:
    assert forbidden_at(WHOLE, FORBADE) is None


def test_pieces_are_known_by_their_tokens() -> None:
    assert forbidden_at(answer(500, {"error": ERROR}, script=["a", "b"]), told(f"{name('a', 'b')}:1")) == 1


@pytest.mark.parametrize("read", [said, response, message])
@pytest.mark.parametrize("status", [400, 422, 500])
@pytest.mark.parametrize("streams", [False, True])
def test_a_refusal_of_a_good_request_is_a_fault(read: Any, status: int, streams: bool) -> None:
    one = answer(status, {"error": ERROR})
    one = replace(one, request=replace(one.request, json={**one.request.json, "stream": streams}))

    assert f"answered with {status}: " in read(one).errors[0]


@pytest.mark.parametrize("status", [401, 404, 429, 501, 503, None])
def test_a_server_that_refuses_whatever_is_asked_is_not_accused(status: int | None) -> None:
    with pytest.raises(Undecided):
        said(replace(BROKEN, status=status, error="" if status else "refused"))


def test_a_request_that_may_be_refused_is_judged_by_its_own_check() -> None:
    one = replace(BROKEN, request=replace(BROKEN.request, expect=None), status=400)

    with pytest.raises(Undecided):
        said(one)
