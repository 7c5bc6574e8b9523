"""The time that recording may take follows from what the server did under load."""

from __future__ import annotations

import json

import pytest

from pytest_vllm.run.pace import RecordingReport, Span, aggregate_rate, generated_tokens
from pytest_vllm.wire.recording import Recording, Request


def test_the_rate_is_that_of_the_loaded_server() -> None:
    """Eight at once for 10 s, then one alone for 10 s: the tail says nothing about the server."""
    spans = [Span(0.0, 10.0, 100)] * 7 + [Span(0.0, 20.0, 200)]

    assert aggregate_rate(spans) == pytest.approx(80.0)


def test_a_short_peak_is_no_load() -> None:
    spans = [Span(0.0, 10.0, 100), Span(5.0, 5.1, 1), Span(5.0, 5.1, 1)]

    assert aggregate_rate(spans) == pytest.approx(10.2)


def test_waiting_of_the_client_does_not_count() -> None:
    assert aggregate_rate([Span(0.0, 1.0, 10), Span(2.0, 3.0, 10)]) == pytest.approx(10.0)


@pytest.mark.parametrize("spans", [[], [Span(0.0, 0.0, 5)], [Span(0.0, 1.0, 0)]])
def test_no_tokens_no_rate(spans: list[Span]) -> None:
    assert aggregate_rate(spans) == 0.0


def test_the_bound() -> None:
    report = RecordingReport(
        concurrent_seconds=4.0,
        alone_seconds=1.0,
        exchange_seconds={"a": 2.0},
        longest_chain_seconds=2.0,
        generated_tokens=100,
        aggregate_rate=50.0,
    )

    assert report.bound_seconds == pytest.approx(1.5 * (2.0 + 2.0))
    assert report.seconds == pytest.approx(5.0)
    assert report.as_detail()["within_bound"] is True
    assert json.loads(json.dumps(report.as_detail())) == report.as_detail()


def test_without_tokens_the_chain_bounds() -> None:
    assert RecordingReport(longest_chain_seconds=2.0).bound_seconds == pytest.approx(3.0)


def answer(body: str, kind: str = "application/json", status: int = 200) -> Recording:
    headers = (("content-type", kind),)
    return Recording(
        "k", Request("POST", "/"), status=status, headers=headers, chunks=((0.1, body.encode()),)
    )


SSE = "text/event-stream; charset=utf-8"
ROLE = 'data: {"choices": [{"delta": {"role": "assistant", "content": ""}}]}\n\n'
TEXT = 'data: {"choices": [{"index": 0, "text": "a"}]}\n\n'
DELTA = 'data: {"choices": [{"delta": {"content": "a"}}]}\n\n'


@pytest.mark.parametrize(
    ("recording", "tokens"),
    [
        (answer('{"usage": {"completion_tokens": 7}}'), 7),
        (answer('{"usage": {"output_tokens": 5}}'), 5),
        (answer('{"usage": {"prompt_tokens": 5}}'), 0),
        (answer('{"usage": null, "response": null}'), 0),
        (answer("[]"), 0),
        (answer("<html>"), 0),
        (answer('{"usage": {"completion_tokens": 7}}', status=400), 0),
        (answer(ROLE + DELTA * 3 + "data: [DONE]\n\n", SSE), 3),
        (answer(TEXT * 2, SSE), 2),
        (answer('data: {"choices": [1]}\n\ndata: {"choices": 1}\n\n', SSE), 0),
        (
            answer(
                DELTA * 3 + 'data: {"choices": [], "usage": {"completion_tokens": 9}}\n\ndata: [DONE]\n\n',
                SSE,
            ),
            9,
        ),
        (answer('data: {"response": {"usage": {"output_tokens": 4}}}\n\n', SSE), 4),
        (answer("data: {oops\n\n", SSE), 0),
        (Recording("k", Request("GET", "/"), error="refused"), 0),
    ],
)
def test_tokens_come_from_usage(recording: Recording, tokens: int) -> None:
    assert generated_tokens(recording) == tokens
