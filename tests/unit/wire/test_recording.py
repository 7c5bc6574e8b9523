"""A recording survives the disk, and says undecided rather than guessing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import Recording, Request, Undecided, dump, load
from pytest_vllm.wire.server import Server

TEXTS = st.text(st.characters(codec=None), max_size=20)  # lone surrogates included
TIMES = st.floats(0, 1e4).map(lambda at: round(at, 6))
REQUESTS = st.builds(
    Request,
    method=st.sampled_from(["GET", "POST"]),
    path=TEXTS,
    json=st.one_of(st.none(), st.dictionaries(TEXTS, st.one_of(TEXTS, st.integers(), st.none()), max_size=3)),
    content=st.one_of(st.none(), TEXTS),
    headers=st.dictionaries(TEXTS, st.one_of(st.none(), TEXTS), max_size=2),
    abort_after=st.one_of(st.none(), st.integers(0, 9)),
    timeout=st.one_of(st.none(), TIMES),
    expect=st.one_of(st.none(), st.integers(100, 599)),
)
RECORDINGS = st.builds(
    Recording,
    key=TEXTS,
    request=REQUESTS,
    status=st.one_of(st.none(), st.integers(100, 599)),
    headers=st.lists(st.tuples(TEXTS, TEXTS), max_size=3).map(tuple),
    chunks=st.lists(st.tuples(TIMES, st.binary(max_size=20)), max_size=4).map(tuple),
    sent=TIMES,
    headers_at=st.one_of(st.none(), TIMES),
    seconds=TIMES,
    error=TEXTS,
    metrics_before=st.one_of(st.none(), TEXTS),
    metrics_after=st.one_of(st.none(), TEXTS),
    aborted=st.booleans(),
    failure=st.one_of(st.none(), st.sampled_from(Failure)),
)


@given(RECORDINGS)
def test_a_recording_comes_back_as_it_was(recording: Recording) -> None:
    written = dump(recording).encode()

    assert load(written.decode()) == recording


def answer(body: bytes, status: int = 200) -> Recording:
    return Recording("a.b", Request("GET", "/"), status=status, chunks=((0.1, body),))


@pytest.mark.parametrize(("told", "renamed"), [("mine", False), ("edge-1", True), ("", False)])
def test_a_request_that_got_another_name_on_the_way(told: str, renamed: bool) -> None:
    request = Request("GET", "/", headers={"X-Request-ID": "mine"})

    assert Recording("a", request, status=200, headers=(("x-request-id", told),)).renamed is renamed
    assert not Recording("a", Request("GET", "/"), headers=(("x-request-id", "edge-1"),)).renamed


@pytest.mark.parametrize(
    ("path", "status", "body", "kept"),
    [
        ("/health", 404, b"<html>404</html>", True),
        ("/health", 404, b"", True),
        ("/health", 403, b'{"message": "no route"}', True),
        ("/health", 404, b'{"detail": "Not Found"}', False),
        ("/health", 404, b'{"error": {"message": "no"}}', False),
        ("/health", 500, b"<html>", False),
        ("/v1/models", 404, b"<html>", False),
    ],
)
def test_what_something_in_front_keeps_from_clients(path: str, status: int, body: bytes, kept: bool) -> None:
    answer = Recording("a.b", Request("GET", path), status=status, chunks=((0.1, body),))

    assert Server("http://x", "m", launcher="attach").kept(answer) is kept
    assert not Server("http://x", "m", launcher="process").kept(answer)


@given(RECORDINGS, st.data())
def test_a_damaged_recording_is_a_value_error(recording: Recording, data: st.DataObject) -> None:
    written = dump(recording)
    cut = data.draw(st.integers(0, len(written) - 2))
    with pytest.raises(ValueError, match=r"recording"):
        load(written[:cut])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "cut short"),
        ("[1]\n[2]\n", "no|not"),
        ('{"format": "other", "version": 1}\n{}\n', "its format is 'other'"),
        ('{"format": "pytest-vllm-recording", "version": 99}\n{}\n', "version 99 is newer than 2"),
        ('{"format": "pytest-vllm-recording", "version": 2}\n{}\n', "damaged"),
    ],
)
def test_another_text_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        load(text)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"NaN", b'{"a": Infinity}', b'"\xff"', b"\xff\xfe{\x00}\x00", b"[" * 99_999]
)
def test_what_is_no_json_is_undecided(body: bytes) -> None:
    with pytest.raises(Undecided, match=r"a\.b: the body is not JSON"):
        _ = answer(body).json


def test_ok_is_for_answers_with_200() -> None:
    refused = answer(b'{"error": {}}', 400)

    assert answer(b'{"a": 1}').ok == {"a": 1}
    assert refused.json == {"error": {}}
    with pytest.raises(Undecided, match="answered with 400"):
        _ = refused.ok
    with pytest.raises(Undecided, match="answered with 400"):
        _ = refused.events


def test_no_response_is_undecided() -> None:
    lost = Recording("a.b", Request("GET", "/"), error="connection refused")
    for read in ("json", "ok", "events", "deltas"):
        with pytest.raises(Undecided, match="connection refused"):
            getattr(lost, read)


def test_deltas_are_the_json_events() -> None:
    stream = answer(b'data: {"n": 1}\n\n: ping\n\ndata: {"n": 2}\n\ndata: [DONE]\n\ndata: half')

    assert stream.deltas == [{"n": 1}, {"n": 2}]
    assert [event.is_done for event in stream.events] == [False, False, True]
    assert stream.unfinished == b"data: half"
    with pytest.raises(Undecided, match="an event is not JSON"):
        _ = answer(b"data: {oops}\n\n").deltas


def test_the_first_header_of_a_name_counts() -> None:
    recording = Recording("k", Request("GET", "/"), headers=(("x-a", "1"), ("x-a", "2")))

    assert (recording.header("X-A"), recording.header("x-b")) == ("1", "")


def test_a_rewritten_recording_forgets_what_it_knew() -> None:
    first = answer(b'{"a": 1}')
    assert first.json == {"a": 1}
    second = first.with_response(chunks=((0.0, b'{"a": 2}'),))

    assert second.json == {"a": 2}


@pytest.mark.parametrize("body", [{"stream": True}, {"stream": False}, {}, None, [1]])
def test_a_request_knows_whether_it_streams(body: Any) -> None:
    streams = json.dumps(body) == '{"stream": true}'

    assert Request("POST", "/", json=body).streams is streams
