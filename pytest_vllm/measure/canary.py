"""A known question inside the load: speed counts only if the outputs were right.

What is compared is the server with itself (alone and under load), and what no healthy model says: one
character again and again, nothing, undecodable text.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Shorter than a block of any KV cache, so that asking it again hits no prefix.
PROMPT = "one, two, three, four, five, six,"
TOKENS = 16
#: Share of the canaries that must begin as the one that was asked alone. Batching may flip near-ties.
AGREE = 0.75
#: Characters at the beginning that must agree.
BEGINNING = 12


def degenerate(text: str) -> str:
    """Why this is not text of a healthy model; empty when it may be one."""
    plain = text.strip()
    if not plain:
        return "an empty answer"
    if plain.count("\ufffd") * 2 > len(plain):
        return f"undecodable text: {plain[:24]!r}"
    if len(plain) >= 8 and max(Counter(plain).values()) >= 0.9 * len(plain):
        return f"one character again and again: {plain[:24]!r}"
    return ""


def fault(alone: Sequence[str], loaded: Sequence[str], others: Sequence[str]) -> str:
    """Why the outputs are not right; empty when they are.

    Args:
        alone: answers of canaries that had the server to themselves.
        loaded: answers of canaries under load.
        others: some answers of the load itself.
    """
    for where, texts in (("alone", alone), ("under load", loaded)):
        for text in texts:
            if wrong := degenerate(text):
                return f"the canary {where} was answered with {wrong}"
    if alone and loaded:
        same = sum(1 for text in loaded if text[:BEGINNING] == alone[0][:BEGINNING])
        if same < AGREE * len(loaded):
            other = next(text for text in loaded if text[:BEGINNING] != alone[0][:BEGINNING])
            return (
                f"{len(loaded) - same} of {len(loaded)} canaries under load begin otherwise than alone: "
                f"{other[:40]!r}, alone {alone[0][:40]!r}"
            )
    # a small model runs into loops of its own, each another one; a broken engine says one thing to everybody
    if len(others) > 1 and all(map(degenerate, others)) and len(set("".join(others).strip())) <= 1:
        return f"all {len(others)} answers of the load are {degenerate(others[0])}"
    return ""
