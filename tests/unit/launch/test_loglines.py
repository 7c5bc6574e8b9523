"""A log as it arrives."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_vllm.launch.loglines import LogLines


def texts(lines: LogLines) -> list[str]:
    """Without the times."""
    return [text for _, text in lines.since()]


def log(*pieces: bytes, secrets: tuple[str, ...] = ()) -> LogLines:
    """Fed piece by piece, one second each, and closed."""
    lines = LogLines(secrets, now=count(100.0).__next__)
    for piece in pieces:
        lines.feed(piece)
    lines.close()
    return lines


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([b"one\ntwo\n"], ["one", "two"]),
        ([b"o", b"ne\nt", b"wo"], ["one", "two"]),
        ([b"one\r", b"\ntwo\r\n"], ["one", "two"]),
        ([b"\n\n  \none\n"], ["one"]),
        ([b"\x1b[36m(APIServer pid=1)\x1b[0;0m INFO\n"], ["(APIServer pid=1) INFO"]),
        (["ü".encode()[:1], "ü".encode()[1:] + b"\n"], ["ü"]),
        ([b"\xff\n"], ["\ufffd"]),
        ([b"x" * 20_000 + b"\n"], ["x" * 16_384]),
    ],
)
def test_lines(pieces: list[bytes], expected: list[str]) -> None:
    """Whatever pieces they come in."""
    assert texts(log(*pieces)) == expected


def test_line_counts_once_its_end_has_come() -> None:
    """Half a line is no line, until the log is closed."""
    lines = LogLines()
    lines.feed(b"half")
    assert texts(lines) == []

    lines.close()

    assert texts(lines) == ["half"]
    lines.close()
    assert len(lines) == 1


def test_time_is_that_of_arrival() -> None:
    """One reading of the clock for each line."""
    assert log(b"one\n", b"two\n").since() == [(100.0, "one"), (101.0, "two")]


def test_only_newer_lines_are_given() -> None:
    """From a number on."""
    assert [text for _, text in log(b"a\nb\nc\n").since(2)] == ["c"]


def test_redrawn_progress_gives_a_line_a_second_and_its_last_state() -> None:
    """A bar that is redrawn a hundred times a second does not fill the log."""
    times = iter([100.0 + step / 10 for step in range(100)])
    lines = LogLines(now=times.__next__)
    for step in range(30):
        lines.feed(f"\rcapturing {step}/30".encode())
    lines.feed(b"\rcapturing 30/30\n")

    assert len(lines) <= 5
    assert texts(lines)[-1] == "capturing 30/30"


def test_secrets_are_replaced() -> None:
    """Known from the start or later; the longer one first, what is too short to be one is left."""
    lines = LogLines(["sk-1234", "sk-1234-long", "a"])
    lines.hide(["hf-9876"])
    lines.feed(b"key sk-1234-long, sk-1234, hf-9876 and a\n")
    lines.say("we say sk-1234")

    assert texts(lines) == ["key ***, ***, *** and a", "we say ***"]


@given(
    st.text(
        st.characters(codec="utf-8", exclude_characters="\x1b\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\r"),
        max_size=80,
    ),
    st.data(),
)
def test_pieces_make_no_difference(text: str, data: st.DataObject) -> None:
    """A log cut anywhere gives the lines of the whole."""
    raw = text.encode()
    cut = data.draw(st.integers(0, len(raw)))

    assert texts(log(raw[:cut], raw[cut:])) == texts(log(raw))
