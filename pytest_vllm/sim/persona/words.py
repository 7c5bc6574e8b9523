"""Sentences made of parts: endless, plain, and seldom twice the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

_WHEN = (
    "In the morning", "Late at night", "After the rain", "Before the meeting", "On the last day",
    "Once again", "Without any hurry", "As agreed", "Far from the coast", "At the old station",
    "Between two trains", "In spring",
)  # fmt: skip
_WHO = (
    "a small team", "the engineer", "an old friend", "the night shift", "a patient teacher",
    "the harbour master", "a young reader", "the whole village", "the second driver", "a careful gardener",
    "the new clerk", "nobody else",
)  # fmt: skip
_DID = (
    "checked", "wrote down", "repaired", "carried home", "explained", "counted", "painted", "measured",
    "found", "remembered", "sorted", "described",
)  # fmt: skip
_WHAT = (
    "every part of the machine", "the names of the rivers", "a box of tools", "the answer to the letter",
    "seven blue lamps", "the map of the valley", "the bread for the table", "an open window",
    "the last chapter", "the stone bridge", "a simple plan", "the clock in the hall",
)  # fmt: skip
_OPENINGS = (
    "Well", "Right", "Let me see", "Good question", "To be frank", "Briefly", "Honestly", "In a word",
    "As I see it", "Simply put", "Off the top of my head", "Now then", "Of course", "Certainly", "Gladly",
    "Interesting",
)  # fmt: skip
_ASIDES = (
    "since you ask", "for what it is worth", "as far as I know", "if I may", "on reflection", "in short",
    "speaking plainly", "to begin with", "by the way", "all in all", "at first glance", "without doubt",
)  # fmt: skip
_LIVELY = (
    "Ah", "Oh", "Hm", "Ha", "So", "Yes", "No", "Now", "Hey", "Why", "Ok", "Aha", "Mm", "Sir", "Fun", "Odd",
    "Sun", "Fog", "Tea", "Jam", "Red", "Owl", "Fig", "Zip", "Elm", "Ink", "Kit", "Log", "Nut", "Pie",
)  # fmt: skip


def sentence(rng: random.Random) -> str:
    """One sentence."""
    when, who = rng.choice(_WHEN), rng.choice(_WHO)
    return f"{when}, {who} {rng.choice(_DID)} {rng.choice(_WHAT)}."


def opening(rng: random.Random) -> str:
    """How a lively speaker begins: seldom twice the same, from the first words on."""
    return f"{rng.choice(_LIVELY)} {rng.choice(_LIVELY)}, {rng.choice(_OPENINGS)}, {rng.choice(_ASIDES)}:"
