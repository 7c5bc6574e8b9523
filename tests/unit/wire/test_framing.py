"""A body ends where HTTP/1.1 says it ends, however its bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_vllm.wire.framing import ByChunks, ByLength, FramingError, UntilClose, framing_of


def test_the_head_decides() -> None:
    length, chunked = ("content-length", "3"), ("transfer-encoding", "Chunked")

    assert isinstance(framing_of("GET", 200, [length]), ByLength)
    assert isinstance(framing_of("GET", 200, [length, chunked]), ByChunks)
    assert isinstance(framing_of("GET", 200, []), UntilClose)


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_some_responses_have_no_body(method: str, status: int) -> None:
    assert framing_of(method, status, [("content-length", "3")]).done


def test_an_unknown_coding_is_refused() -> None:
    with pytest.raises(FramingError, match="gzip"):
        framing_of("GET", 200, [("transfer-encoding", "gzip")])


CUTS = st.lists(st.integers(0, 200))


@given(
    st.lists(st.binary(min_size=1, max_size=40)), st.sampled_from([b"", b";ext=1", b" "]), st.booleans(), CUTS
)
def test_chunks_join_however_they_are_cut(
    pieces: list[bytes], extra: bytes, trailer: bool, cuts: list[int]
) -> None:
    framed = b"".join(b"%X%s\r\n%s\r\n" % (len(piece), extra, piece) for piece in pieces)
    framed += b"0\r\n" + (b"x-trailer: 1\r\n" if trailer else b"") + b"\r\n"
    framing = ByChunks()
    places = sorted({0, len(framed), *(cut for cut in cuts if cut < len(framed))})
    body = b""
    for start, end in pairwise(places):
        assert not framing.done
        body += framing.feed(framed[start:end])

    assert body == b"".join(pieces)
    assert framing.done
    assert framing.end() == ""
    assert framing.excess == 0


@pytest.mark.parametrize("size", [b"", b"0x5", b"-5", b"+5", b"5 5", b"1_0", b"f" * 17, b"z"])
def test_a_size_is_plain_hexadecimal(size: bytes) -> None:
    with pytest.raises(FramingError, match="hexadecimal"):
        ByChunks().feed(size + b"\r\nhello\r\n")


def test_an_endless_size_line_is_refused() -> None:
    with pytest.raises(FramingError, match="longer"):
        ByChunks().feed(b"1" * 70_000)


def test_what_follows_the_body_is_counted() -> None:
    by_length, by_chunks = ByLength(3), ByChunks()

    assert by_length.feed(b"abcde") == b"abc"
    assert by_chunks.feed(b"1\r\na\r\n0\r\n\r\nmore") == b"a"
    assert (by_length.excess, by_chunks.excess) == (2, 4)


def test_what_is_missing_is_said() -> None:
    by_length, by_chunks = ByLength(3), ByChunks()
    by_length.feed(b"a")
    by_chunks.feed(b"5\r\nhe")

    assert by_length.end() == "the body ended after 1 of 3 bytes"
    assert by_chunks.end() == "the connection ended inside the chunked body"
    assert UntilClose().end() == ""
