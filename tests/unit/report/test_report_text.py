"""Columns, clocks, and text that cannot move a cursor."""

from __future__ import annotations

import pytest

from pytest_vllm.report.text import Style, around, clip, clock, columns, count, paragraphs, printable, wrap


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("plain text", "plain text"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("one\ntwo\r", "one\\ntwo\\r"),
        ("abc\u202edcba", "abc\\u202edcba"),
        ("half \udc80", "half \\udc80"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("日本 é", "日本 é"),
    ],
)
def test_what_does_not_print_is_shown_as_its_escape(said: str, shown: str) -> None:
    """Escape sequences, line ends, direction marks and surrogates become visible."""
    assert printable(said) == shown


def test_wide_characters_take_two_columns_and_marks_none() -> None:
    """Columns are what a terminal uses, not characters."""
    assert (columns("abc"), columns("日本"), columns("e\u0301")) == (3, 4, 1)


@pytest.mark.parametrize("width", [10, 11, 12, 13])
def test_cut_text_stays_within_its_columns(width: int) -> None:
    """A cut text is never wider than asked, and says that it was cut."""
    cut = clip("ab日本語日本語日本語", width)

    assert columns(cut) <= width
    assert cut.endswith("…")


def test_short_text_is_not_cut() -> None:
    """Text that fits is left alone."""
    assert clip("fits", 4) == "fits"


def test_a_cut_keeps_the_needle() -> None:
    """A long text is cut so that what matters stays visible."""
    text = "x" * 300 + "needle" + "y" * 300
    cut = around(text, "needle", 40)

    assert "needle" in cut
    assert columns(cut) <= 40


def test_an_absent_needle_cuts_the_end() -> None:
    """Without a needle the beginning stays."""
    assert around("abcdefgh", "zz", 5) == "abcd…"


def test_words_wider_than_the_line_are_broken() -> None:
    """No line is wider than asked, and nothing is lost."""
    text = "short " + "w" * 25 + " 日本語日本語日本語 end"
    lines = wrap(text, 10)

    assert max(columns(line) for line in lines) <= 10
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_spaces_in_front_survive() -> None:
    """A caret under a column stays under it."""
    assert wrap("     ^", 10) == ["     ^"]


def test_long_reasons_say_how_much_is_missing() -> None:
    """A count stands for the lines that are left out."""
    lines = paragraphs("\n".join(str(n) for n in range(30)), 20, most=5)

    assert lines == ["0", "1", "2", "3", "… 26 more lines"]


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0:00"), (592.9, "9:52"), (3850, "1:04:10")])
def test_clock(seconds: float, shown: str) -> None:
    """Minutes and seconds; hours from an hour on."""
    assert clock(seconds) == shown


def test_counts_agree_with_their_noun() -> None:
    """One is singular."""
    assert [count(1, "check"), count(2, "check"), count(0, "entry", "entries")] == [
        "1 check",
        "2 checks",
        "0 entries",
    ]


def test_colour_is_support_only() -> None:
    """Without colour the text is the same without escapes."""
    coloured, plain = Style(color=True), Style()

    assert coloured.bad("no") == "\x1b[1;31mno\x1b[0m"
    paints = (plain.bad, plain.good, plain.doubtful, plain.strong)
    assert {paint("no") for paint in paints} == {"no"}
