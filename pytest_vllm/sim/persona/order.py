"""Pairs of tokens that nobody writes: well-known sentences, read backwards."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_vllm.sim.tokens.tokenizer import Tokenizer

SENTENCES = (
    "The dog ran after the ball and came back with it.",
    "She opened the window because the room was warm.",
    "We bought bread and milk at the shop on the corner.",
    "It was late, so they took the last train home.",
)


@cache
def unlikely_pairs(tokens: Tokenizer) -> frozenset[tuple[int, int]]:
    """Neighbours in a sentence with its words in backward order, and in no sentence as it is."""
    usual = {pair for text in SENTENCES for pair in pairwise(tokens.encode(f" {text}"))}
    backwards = {pair for text in SENTENCES for pair in pairwise(tokens.encode(_backwards(text)))}
    return frozenset(backwards - usual)


def _backwards(text: str) -> str:
    return " ".join(reversed(text.rstrip(".").split())) + "."
