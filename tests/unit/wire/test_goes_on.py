"""Streams that go on after their end are broken off at once, and others never are."""

from __future__ import annotations

import pytest

from pytest_vllm.wire.endless import Endless, most_events
from pytest_vllm.wire.recording import Request

CHAT, PLAIN = "/v1/chat/completions", "/v1/completions"
TOKEN, DONE, PING = b'data: {"choices": [{"text": "a"}]}\n\n', b"data: [DONE]\n\n", b": still here\n\n"


def stream(path: str, **body: object) -> Request:
    return Request("POST", path, json={"stream": True, **body})


def test_what_comes_long_after_done_is_no_part_of_it() -> None:
    endless = Endless(stream(CHAT))

    assert not endless(1.0, TOKEN)
    assert not endless(1.1, TOKEN + DONE)
    assert not endless(1.3, PING)
    assert endless(2.2, PING)
    assert endless.why == "the stream went on 1.1 s after [DONE]"


def test_a_text_that_speaks_of_done_is_no_end() -> None:
    endless = Endless(stream(CHAT))

    assert not endless(0.0, b'data: {"choices": [{"text": "\\ndata: [DONE]"}]}\n\n')
    assert not endless(9.0, TOKEN)


def test_more_events_than_tokens_were_asked_for() -> None:
    endless = Endless(stream(PLAIN, max_tokens=4))
    seen = [endless(float(number), TOKEN) for number in range(4 + 4 + 8)]

    assert not any(seen)
    assert endless(99.0, TOKEN)
    assert endless.why == "the stream goes on after 17 events, 16 are the most for what was asked"


@pytest.mark.parametrize(
    ("request_", "most"),
    [
        (stream(PLAIN, max_tokens=4), 16),
        (stream(PLAIN, max_tokens=4, prompt=["a", "b"], n=2), 4 * 8 + 8),
        (stream(PLAIN, max_tokens=4, prompt=[1, 2, 3]), 16),
        (stream(CHAT, max_completion_tokens=2, max_tokens=9), 14),
        (stream(CHAT), None),
        (stream(CHAT, max_tokens=4, tools=[{}]), None),
        (stream(CHAT, max_tokens="4"), None),
        (stream("/v1/responses", max_output_tokens=4), None),
        (Request("POST", CHAT, json={"max_tokens": 4}), None),
    ],
)
def test_how_many_events_a_stream_may_have(request_: Request, most: int | None) -> None:
    assert most_events(request_) == most
