"""The record of a request: when what came, and whatever a broken server sends instead."""

from __future__ import annotations

import json
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_vllm.measure.driver import Call
from pytest_vllm.measure.samples import Sample, sample_of
from pytest_vllm.measure.wirebytes import Head

HEAD = Head(200, {"content-type": "text/event-stream"}, 19)
STATUS_LINE = b"HTTP/1.1 200 OK\r\n\r\n"
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
ANYTHING = st.recursive(LEAVES, lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(), part))
#: What an event of a stream holds, each part sometimes of another type.
FUNCTION = ANYTHING | st.fixed_dictionaries({"name": ANYTHING, "arguments": ANYTHING})
TOOL_CALL = ANYTHING | st.fixed_dictionaries({"function": FUNCTION})
DELTA = ANYTHING | st.fixed_dictionaries({"content": ANYTHING, "tool_calls": ANYTHING | st.lists(TOOL_CALL)})
CHOICE = ANYTHING | st.fixed_dictionaries({"delta": DELTA, "text": ANYTHING, "finish_reason": ANYTHING})
DETAILS = ANYTHING | st.fixed_dictionaries({"cached_tokens": ANYTHING})
USAGE = ANYTHING | st.fixed_dictionaries({"completion_tokens": ANYTHING, "prompt_tokens_details": DETAILS})
EVENT = ANYTHING | st.fixed_dictionaries({"choices": ANYTHING | st.lists(CHOICE), "usage": USAGE})


def answered(*payloads: bytes, asked: int | None = None) -> Sample:
    """The record of a stream of these events, the first after 50 ms, then one every 10 ms."""
    pieces = [STATUS_LINE, *(b"data: " + payload + b"\n\n" for payload in payloads)]
    times = array("d", (1.05 + 0.01 * max(0, number - 1) for number in range(len(pieces))))
    call = Call(b"", lambda _: None, 1.0, sent=1.0, pieces=pieces, times=times, head=HEAD, ended=2.0)
    return sample_of(call, kind="chat", asked=asked, begin=1.0, speed=1.0, texts=True)


def said(text: str, **more: Any) -> bytes:
    return json.dumps({"choices": [{"delta": {"content": text}}], **more}).encode()


def test_the_first_delta_is_the_first_that_says_something() -> None:
    role = json.dumps({"choices": [{"delta": {"role": "assistant", "content": ""}}]}).encode()

    sample = answered(role, said("a"), said("b"), b"[DONE]")

    assert [round(at, 3) for at in sample.deltas] == [0.06, 0.07]
    assert sample.text == "ab"


def test_tokens_are_those_of_the_usage() -> None:
    usage = json.dumps({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}).encode()

    sample = answered(said("a"), usage, b"[DONE]", asked=4)

    assert (sample.tokens, sample.prompt_tokens, sample.error) == (4, 9, "")


@pytest.mark.parametrize(
    ("payloads", "asked", "error"),
    [
        ((said("a"),), None, "the stream ended without [DONE]"),
        ((b"[DONE]",), None, "not one token came"),
        ((said("a", usage={"completion_tokens": 3}), b"[DONE]"), 4, "3 tokens instead of 4"),
        ((b'{"error": {"message": "out of memory"}}', b"[DONE]"), None, "an error in the stream: "),
    ],
)
def test_what_went_wrong_is_told(payloads: tuple[bytes, ...], asked: int | None, error: str) -> None:
    assert answered(*payloads, asked=asked).error.startswith(error)


@given(st.lists(EVENT.map(json.dumps).map(str.encode) | st.binary(max_size=20), max_size=4))
def test_whatever_a_broken_server_sends_gives_a_record(payloads: list[bytes]) -> None:
    sample = answered(*payloads, b"[DONE]")

    assert Sample.of(json.loads(json.dumps(sample.plain()))).tokens == sample.tokens
