"""The SSE reader follows the format and hides nothing."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_vllm.wire.sse import Event, SSEReader, is_comment, read_stream, strict_json


def events_of(stream: bytes) -> list[Event]:
    return read_stream([(1.0, stream)])[0]


def test_an_event_has_data_name_and_time() -> None:
    events, pending = read_stream([(0.5, b"event: delta\nda"), (0.75, b'ta: {"a":1}\n'), (0.9, b"\ndata: x")])

    assert events == [Event(0.9, '{"a":1}', "delta", 'event: delta\ndata: {"a":1}')]
    assert events[0].json == {"a": 1}
    assert pending == b"data: x"


def test_data_lines_are_joined_and_one_space_is_taken_off() -> None:
    assert events_of(b"data: a\ndata:b\ndata:  c\n\n")[0].data == "a\nb\n c"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_of_the_format_is_read(end: bytes) -> None:
    stream = end.join([b"data: 1", b"", b": ping", b"", b"data: [DONE]", b"", b""])
    events = events_of(stream)

    assert [event.data for event in events] == ["1", "[DONE]"]
    assert [event.is_done for event in events] == [False, True]
    assert all(not event.faults for event in events)


def test_comments_are_no_events() -> None:
    reader = SSEReader()
    seen = reader.feed(0.0, b": ping\n\n: a\ndata: 1\n\n")

    assert [is_comment(event) for event in seen] == [True, False]
    assert [event.data for event in events_of(b": ping\n\n: a\ndata: 1\n\n")] == ["1"]


@pytest.mark.parametrize(
    ("stream", "fault"),
    [
        (b"data: \xff\n\n", "not UTF-8: invalid start byte at byte 6"),
        (b'{"error": 1}\n\n', "unknown field '{\"error\"'"),
        (b"data\n\n", "field 'data' without a colon"),
        (b"retry: soon\ndata: 1\n\n", "retry is not a number: 'soon'"),
        (b"id: 7\n\n", "an event without data"),
        (b"\xef\xbb\xbfdata: 1\n\n", "a byte order mark opens the stream"),
    ],
)
def test_what_does_not_belong_is_named(stream: bytes, fault: str) -> None:
    assert fault in events_of(stream)[0].faults


def test_faults_belong_to_their_event() -> None:
    bad, good = events_of(b"oops: 1\ndata: 1\n\ndata: 2\n\n")

    assert bad.faults
    assert good.faults == ()


def test_a_byte_order_mark_costs_no_event() -> None:
    assert events_of(b"\xef\xbb\xbfdata: 1\n\n")[0].data == "1"


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "{", "", "[" * 100_000])
def test_what_other_languages_cannot_read_is_no_json(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        strict_json(text)


def test_an_event_in_many_pieces_is_read_in_linear_time() -> None:
    stream = [(0.0, b"data: ")] + [(0.0, b"x" * 10)] * 100_000 + [(1.0, b"\n\n")]
    events, _ = read_stream(stream)

    assert len(events[0].data) == 1_000_000


LINES = st.sampled_from(
    [
        b"data: {}",
        b"data:",
        b"data",
        b"event: a",
        b"id: 1",
        b": ping",
        b"",
        b"",
        b"oops",
        b"data: \xff",
        "data: é".encode(),
    ]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
STREAMS = st.lists(st.tuples(LINES, ENDS)).map(lambda pairs: b"".join(line + end for line, end in pairs))


@given(st.one_of(STREAMS, st.binary(max_size=60)), st.lists(st.integers(0, 400)))
def test_any_chunking_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    chunks = [(0.0, stream[start:end]) for start, end in pairwise(places)]
    whole, whole_pending = read_stream([(0.0, stream)])
    cut, cut_pending = read_stream(chunks)

    assert cut == whole
    assert cut_pending == whole_pending


@given(STREAMS)
def test_nothing_is_lost(stream: bytes) -> None:
    reader = SSEReader()
    seen = [event.raw for event in reader.feed(0.0, stream)] + [reader.pending.decode(errors="replace")]
    lines = [line for text in seen for line in text.splitlines() if line]

    assert lines == [line for line in stream.decode(errors="replace").splitlines() if line]
