"""The bytes of a response, however reads cut them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_vllm.measure.wirebytes import Head, body_pieces, complete, head_of

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
#: Contents that look like framing are among them.
CONTENT = st.binary(min_size=1, max_size=12) | st.sampled_from(
    [b"\r\n", b"0\r\n\r\n", b"5\r\nhello\r\n", b"\r\n\r\n"]
)


def chunked(contents: list[bytes]) -> bytes:
    return HEAD + b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in contents) + b"0\r\n\r\n"


@given(st.lists(CONTENT, max_size=5), st.data())
def test_a_body_in_chunks_is_read_whatever_the_reads_hold(contents: list[bytes], data: st.DataObject) -> None:
    """Not one byte is lost or moved, and only the last one makes it whole."""
    whole = chunked(contents)
    cuts = data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=8))
    places = [0, *sorted(cuts), len(whole)]
    pieces = [whole[a:b] for a, b in pairwise(places)]
    head = head_of(pieces)

    assert head is not None
    assert (head.status, head.chunked, head.ends) == (200, True, len(HEAD))
    assert complete(head, pieces)
    assert not complete(head, [whole[:-1]])
    given_back = list(body_pieces(head, pieces, [float(at) for at in range(len(pieces))]))
    assert b"".join(part for part, _ in given_back) == b"".join(contents)
    assert [at for _, at in given_back] == sorted(at for _, at in given_back)


def test_each_part_of_a_cut_chunk_has_the_time_of_its_read() -> None:
    pieces = [HEAD, b"9\r\nhel", b"lo you", b"\r", b"\n2\r", b"\n!!\r\n0\r\n\r\n"]
    head = head_of(pieces)

    assert head is not None
    found = list(body_pieces(head, pieces, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]))
    assert found == [(b"hel", 1.0), (b"lo you", 2.0), (b"!!", 5.0)]


def test_a_head_is_there_once_its_empty_line_is() -> None:
    assert head_of([HEAD[:-1]]) is None
    assert head_of([HEAD[:-1], HEAD[-1:]]) == Head(
        200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}, len(HEAD)
    )


@pytest.mark.parametrize(
    ("line", "status"), [(b"HTTP/1.1 500 Oh", 500), (b"HTTP/2 200", 0), (b"", 0), (b"HTTP/1.1 many", 0)]
)
def test_only_http_1_tells_a_status(line: bytes, status: int) -> None:
    found = head_of([line + b"\r\nx: y\r\n\r\n"])

    assert found is not None
    assert found.status == status


def test_interim_responses_are_passed_over() -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    found = head_of([interim + HEAD])

    assert found is not None
    assert (found.status, found.ends) == (200, len(interim + HEAD))
    assert head_of([interim]) is None
