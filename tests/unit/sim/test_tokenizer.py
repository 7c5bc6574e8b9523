"""The tokenizer is a real one: everything comes back, characters may span tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_vllm.sim.tokens.tokenizer import EOS, load


@given(st.text())
def test_every_text_comes_back(text: str) -> None:
    """Encoding and decoding are inverse, markers in the text included."""
    tokens = load()

    assert tokens.decode(tokens.encode(text), skip_specials=False) == text


@given(st.text(alphabet="aé日🎉 \n<", max_size=40))
def test_pieces_join_to_the_text(text: str) -> None:
    """Piece by piece gives the same as all at once."""
    tokens = load()
    ids = tokens.encode(text)

    assert "".join(tokens.pieces(ids, skip_specials=False)) == text


@pytest.mark.parametrize(("text", "count"), [("日", 3), ("🎉", 4), ("é", 2), ("</think>", 1), (" the", 1)])
def test_how_many_tokens(text: str, count: int) -> None:
    """Bytes outside ASCII stay alone, markers and common words are one."""
    assert len(load().encode(text)) == count


def test_the_end_token_does_not_show() -> None:
    """Unless it is asked for."""
    tokens = load()

    assert tokens.decode([EOS]) == ""
    assert tokens.decode([EOS], skip_specials=False) == "<|im_end|>"


def test_a_long_word_is_cheap() -> None:
    """A megabyte without a blank does not take the square of its length."""
    assert len(load().encode("a" * 1_000_000)) > 1000
