"""Which part of a response is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_vllm.report.excerpt import COLUMNS, Line, excerpt
from pytest_vllm.report.outline import leaves, outline
from pytest_vllm.report.text import columns
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.redact import Redactor
from tests.golden.sample_parts import CHAT, answer, chunk, stream

PLANTED = "hunter2-correct-horse"


def shown(recording: Recording, reason: str = "", redactor: Redactor | None = None) -> list[str]:
    return [
        f"… {line.left_out}" if line.left_out else line.text
        for line in excerpt(recording, reason, redactor or Redactor())
    ]


def words(count: int) -> list[Any]:
    return [chunk({"content": f"word-{n:02d}"}) for n in range(count)]


def test_a_short_stream_is_shown_whole() -> None:
    """Eight events need no eliding."""
    lines = shown(stream("k", [*words(7), "[DONE]"]))

    assert len(lines) == 8
    assert lines[1] == 'delta.content "word-01"'
    assert lines[-1] == "[DONE]"


def test_a_long_stream_shows_both_ends_and_counts_the_rest() -> None:
    """Two first, three last, and how many are between."""
    lines = shown(stream("k", [*words(40), "[DONE]"]))

    assert [line.split('"')[1] if '"' in line else line for line in lines] == [
        "word-00",
        "word-01",
        "… 36",
        "word-38",
        "word-39",
        "[DONE]",
    ]


@pytest.mark.parametrize(
    "reason",
    ["event 17 has no choices", "chunks [17] lack usage", "the text holds 'word-17'", "got `word-17`"],
)
def test_the_event_that_the_reason_names_is_shown(reason: str) -> None:
    """By its number or by what it says."""
    lines = shown(stream("k", words(40)), reason)

    assert 'delta.content "word-17"' in lines
    assert lines[2:5] == ["… 15", 'delta.content "word-17"', "… 19"]


def test_an_event_that_breaks_the_format_is_shown() -> None:
    """A fault of the stream format is shown with its name, wherever it is."""
    broken = stream("k", words(40))
    chunks = list(broken.chunks)
    chunks[20] = (chunks[20][0], b"dta: oops\n\n")
    lines = shown(broken.with_response(chunks=tuple(chunks)), "event breaks the format")

    assert any("unknown field 'dta'" in line for line in lines)


def test_an_event_that_repeats_the_one_before_says_so() -> None:
    """Nothing new is a finding too."""
    same = chunk({"content": "again"})

    assert shown(stream("k", [same, same]))[1] == "the same as the event before"


def test_times_come_with_the_events() -> None:
    """Each event carries its seconds since sending."""
    lines = excerpt(stream("k", words(2)), "", Redactor())

    assert [line.at for line in lines] == [0.18, 0.21]


def test_bytes_that_no_blank_line_closed_are_shown() -> None:
    """A stream cut in the middle of an event shows what is left."""
    cut = stream("k", words(1))
    cut = cut.with_response(chunks=(*cut.chunks, (0.3, b'data: {"id": "half')), error="connection reset")

    assert shown(cut)[1:] == [
        'not closed by a blank line: data: {"id": "half',
        "the response broke off: connection reset",
    ]


def test_an_abort_on_purpose_is_told() -> None:
    """A connection that the client closed is no fault of the server."""
    assert shown(stream("k", words(1), aborted=True))[-1].startswith("the client closed the connection")


def test_a_long_body_shows_the_fields_that_the_reason_names() -> None:
    """The outline is cut, the fields in question are not."""
    body = {"padding": {f"field-{n}": "x" * 70 for n in range(20)}, **CHAT}
    lines = shown(answer("k", body), "total_tokens is 14, prompt_tokens + completion_tokens is 15")

    assert lines[2].endswith("…")
    assert lines[3:] == ["usage.prompt_tokens  11", "usage.completion_tokens  3", "usage.total_tokens  14"]


def test_fields_that_are_in_sight_are_not_repeated() -> None:
    """Only what the cut took away is shown again."""
    body = {**CHAT, "padding": "x" * 70, "more": ["y" * 70] * 4}
    lines = shown(answer("k", body), "object is 'chat.completion', id is there, more is too long")

    assert lines[3:] == [f'more[{n}]  "{"y" * 70}"' for n in range(4)]


def test_a_body_that_is_no_json_is_shown_as_it_came() -> None:
    """An error page of a proxy is shown with its control characters escaped."""
    assert shown(answer("k", b"<h1>502</h1>\x1b[31m\n")) == ["<h1>502</h1>\\x1b[31m\\n"]


def test_headers_that_the_reason_names_are_shown() -> None:
    """`content-type` in the reason brings the header; others stay out."""
    recording = answer("k", CHAT, headers=(("content-type", "text/html"), ("server", "uvicorn")))

    assert shown(recording, "content-type is text/html")[0] == "content-type: text/html"


def test_metrics_that_the_reason_names_are_shown_before_and_after() -> None:
    """A counter is shown with both of its values."""
    recording = answer(
        "k",
        CHAT,
        metrics_before='# TYPE x counter\nvllm:request_success_total{reason="stop"} 3.0\nvllm:other 1.0\n',
        metrics_after='vllm:request_success_total{reason="stop"} 5.0\nvllm:other 2.0\n',
    )
    reason = "vllm:request_success_total grew by 2, not 1; vllm:missing_total did not grow"

    assert shown(recording, reason)[-2:] == [
        'vllm:request_success_total{reason="stop"}  3.0 -> 5.0',
        "vllm:missing_total  absent from /metrics",
    ]


@pytest.mark.parametrize("place", range(60, 100, 3))
def test_a_secret_at_the_cut_leaves_no_half(place: int) -> None:
    """Redaction comes before cutting, in bodies, streams and text."""
    redactor = Redactor([PLANTED])
    text = "x" * place + PLANTED
    streamed = stream("k", [chunk({"content": text})])
    recordings = [answer("k", text.encode()), answer("k", {"a": text}), streamed]

    for recording in recordings:
        assert PLANTED[:5] not in " ".join(shown(recording, "", redactor))


def test_no_line_is_wider_than_agreed() -> None:
    """Excerpts keep to their columns, whatever comes."""
    wide = [
        answer("k", {"a" * 300: ["日" * 200] * 9}),
        stream("k", [chunk({"content": "日" * 200, f"k{'x' * 200}": 1})] * 3),
        answer("k", b"\x00" * 999),
    ]

    for recording in wide:
        assert max(columns(line) for line in shown(recording, "'日日日'")) <= COLUMNS


def test_deeply_nested_json_is_shown_as_text() -> None:
    """A body that no parser survives does not end the report."""
    assert shown(answer("k", b"[" * 200_000))[0].startswith("[[[[")


def test_no_response_has_no_lines() -> None:
    """What did not come cannot be shown."""
    assert excerpt(Recording("k", Request("GET", "/health"), error="refused"), "", Redactor()) == ()


def test_outline_cuts_what_is_long() -> None:
    """Strings, lists and tools are cut with their sizes."""
    tool = {"type": "function", "function": {"name": "f"}}
    value = {"s": "x" * 100, "l": list(range(9)), "tools": [tool] * 5, "n": None}

    assert outline(value) == (
        '{"s": "' + "x" * 72 + '…" (100 characters), "l": [0, 1, 2, 3, … 5 more], '
        '"tools": [5 tools: f, f, f, …], "n": null}'
    )


def test_leaves_name_every_scalar() -> None:
    """Paths as a person would write them; empty containers count."""
    value = json.loads('{"a": [{"b": 1}, {"b": {}}], "c": []}')

    assert list(leaves(value)) == [("a[0].b", 1), ("a[1].b", {}), ("c", [])]


def test_a_line_that_shows_something_leaves_nothing_out() -> None:
    """The default of a line."""
    assert Line("text").left_out == 0
