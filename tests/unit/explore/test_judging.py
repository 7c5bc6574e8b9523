"""What a trial is accused of, on recordings that are made up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.server import Capability, Server
from suites.explore.judging import ORACLES, judge

CHAT = "/v1/chat/completions"
CAN = ("chat", "completions", "stream", "logprobs", "tokenize")
SERVER = Server(
    "http://127.0.0.1:1",
    "m",
    version="0.32.0",
    models=("m",),
    capabilities={name: Capability(name, present=True, how="") for name in CAN},
)
ASKED = {"model": "m", "temperature": 0, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3}


def answer(
    key: str = "whole", text: str = "a b c", prompt: int = 5, tokens: int = 3, **asked: Any
) -> Recording:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "length",
        "logprobs": None,
    }
    body = {
        "id": f"chatcmpl-{key}",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens},
    }
    return response(key, 200, body, **asked)


def response(key: str, status: int, body: Any, path: str = CHAT, **asked: Any) -> Recording:
    request = Request("POST", path, json={**ASKED, **asked})
    chunks = ((0.1, json.dumps(body).encode() if body != "" else b""),)
    return Recording(key, request, status=status, chunks=chunks)


def count(tokens: int) -> Recording:
    request = Request("POST", "/tokenize", json={"model": "m", "messages": ASKED["messages"]})
    body = json.dumps({"count": tokens, "max_model_len": 99, "tokens": [1] * tokens}).encode()
    return Recording("oracle.count[0]", request, status=200, chunks=((0.1, body),))


def rules(*rows: Recording) -> dict[str, bool]:
    """Rule -> whether it is certain."""
    return {one.rule: one.certain for one in judge(SERVER, rows)}


def refusal(why: str, **asked: Any) -> Recording:
    return response("whole", 400, {"error": {"message": why, "code": 400}}, **asked)


def test_a_right_trial_is_accused_of_nothing() -> None:
    assert rules(answer(), answer("again-0"), count(5)) == {}


def test_every_oracle_that_judges_recordings_alone_takes_part() -> None:
    """Those of `oracle` with the recordings and the server as their only parameters."""
    assert {"oracle.prompt.counted", "oracle.same.text", "oracle.text.foreign"} <= {one[0] for one in ORACLES}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([answer(), count(6)], {"oracle.prompt.counted": True}),
        ([answer(tokens=4)], {"promise.limit": True, "oracle.tokens.length": True}),
        ([answer(stop=["b"])], {"promise.stop": True}),
        ([answer(n=2, temperature=1)], {"promise.choices": True, "oracle.tokens.length": True}),
        ([answer(min_tokens=3, tokens=2)], {"promise.limit": True, "oracle.tokens.length": True}),
        ([answer(structured_outputs={"choice": ["heron"]})], {}),
        ([response("whole", 500, {"error": {"message": "x"}})], {"served.error": True}),
        ([response("whole", 501, {"error": {"message": "x"}})], {"served.error": False}),
        ([response("whole", 200, {"choices": "none"})], {"served.readable": True}),
        ([response("whole", 400, "")], {"served.reason": True}),
        ([refusal("41 messages are too many")], {"served.refused": True}),
        ([refusal("no", logprobs=True)], {"served.maybe-refused": False}),
        ([response("whole", 429, {"error": {"message": "slower"}})], {"served.let-in": False}),
    ],
)
def test_what_is_wrong_is_named(rows: list[Recording], expected: dict[str, bool]) -> None:
    assert rules(*rows) == expected


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (Failure.TRUNCATED, {"served.whole": True}),
        (Failure.TIMEOUT_TOTAL, {"served.in-time": False}),
        (Failure.NO_CONNECTION, {"served.in-time": False}),
        (Failure.UNFIT, {}),
        (Failure.NOT_SENT, {}),
        (Failure.HELD, {}),
        (Failure.GIVEN_UP, {}),
    ],
)
def test_what_is_not_the_server_s_doing_is_not_its_fault(failure: Failure, expected: dict[str, bool]) -> None:
    broken = Recording("whole", Request("POST", CHAT, json=ASKED), error="x", failure=failure)

    assert rules(broken) == expected


def test_answers_that_part_at_a_near_tie_are_excused() -> None:
    """Two candidates that are about as likely, where the answers part."""
    tops = [[("a", -0.1)], [(" b", -0.7), (" x", -0.8)], [(" c", -0.1)]]
    content = [
        {
            "token": row[0][0],
            "logprob": row[0][1],
            "top_logprobs": [{"token": text, "logprob": value} for text, value in row],
        }
        for row in tops
    ]
    listing = answer("oracle.explained[0]", logprobs=True, top_logprobs=5)
    body = json.loads(listing.body)
    body["choices"][0]["logprobs"] = {"content": content}
    listed = response("oracle.explained[0]", 200, body, logprobs=True, top_logprobs=5)

    assert rules(answer(), answer("again-0", "a x c"), listed) == {}
    assert rules(answer(), answer("again-0", "z x c"), listed) == {"oracle.same.text": True}
