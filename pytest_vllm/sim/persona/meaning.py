"""What pooling models make of texts: vectors, relevance, classes, rewards; the same of the same text."""

from __future__ import annotations

import math
import re
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SIZE = 256
#: Words that say nothing of what a text is about.
_COMMON = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "by", "do", "does", "for", "from", "how", "in", "is", "it",
    "its", "of", "on", "or", "that", "the", "this", "to", "was", "were", "what", "when", "where", "which",
    "who", "why", "will", "with",
})  # fmt: skip
_GOOD = frozenset({
    "best", "excellent", "fine", "good", "great", "happy", "helpful", "like", "love", "loved", "lovely",
    "nice", "perfect", "wonderful",
})  # fmt: skip
_BAD = frozenset({
    "awful", "bad", "broken", "disappointing", "hate", "hated", "horrible", "poor", "sad", "slow", "terrible",
    "useless", "worst", "wrong",
})  # fmt: skip


def vector(text: str, size: int = SIZE, *, unit: bool = True) -> list[float]:
    """An embedding, of length 1 unless told otherwise: texts that share words point the same way."""
    values = [0.0] * size
    for word in re.findall(r"\w+", text.lower()):
        pieces = [word, *(word[at : at + 4] for at in range(max(1, len(word) - 3)))]
        for weight, piece in zip([2.0] + [0.5] * len(pieces), pieces, strict=False):
            number = zlib.crc32(piece.encode())
            values[number % size] += weight * (1 if number & 0x10000 else -1)
    if not any(values):
        values[0] = 1.0
    length = math.sqrt(sum(value * value for value in values)) if unit else 1.0
    return [value / length for value in values]


def likeness(left: str, right: str) -> float:
    """Cosine of two texts' embeddings."""
    return sum(a * b for a, b in zip(vector(left), vector(right), strict=True))


def late_likeness(left: str, right: str) -> float:
    """For each word of the left text how like it is to the most like word of the right, summed (MaxSim)."""
    asked, words = (re.findall(r"\w+", text.lower()) or [text] for text in (left, right))
    return sum(max(likeness(one, other) for other in words) for one in asked)


def relevance(query: str, document: str) -> float:
    """How well a document answers a query, as a logit: mostly the share of its words that are in it."""
    wanted, found = _stems(query), _stems(document)
    share = len(wanted & found) / len(wanted) if wanted else 0.0
    return 7.0 * share - 4.0 + likeness(query, document)


def classes(text: str, labels: Sequence[str]) -> list[float]:
    """A logit for each label: of labels that name a mood by the words' mood, of others by what they share."""
    words = set(re.findall(r"\w+", text.lower()))
    mood = len(words & _GOOD) - len(words & _BAD)
    return [round(_class(label.lower(), words, mood), 6) for label in labels]


def _class(label: str, words: set[str], mood: int) -> float:
    if label.startswith(("positive", "negative")):
        return 2.0 * mood * (1 if label.startswith("positive") else -1)
    if label.startswith("neutral"):
        return 1.0 - 2.0 * abs(mood)
    drawn = zlib.crc32(" ".join([label, *sorted(words)]).encode()) / 2**32
    return drawn + 3.0 * (label in words)


def rewards(text: str, count: int) -> list[list[float]]:
    """A number for each of `count` tokens: it nears what the whole text deserves."""
    words = set(re.findall(r"\w+", text.lower()))
    worth = 1.0 + len(words & _GOOD) - len(words & _BAD)
    return [[round(worth * (at + 1) / count, 6)] for at in range(count)]


def probabilities(logits: Sequence[float]) -> list[float]:
    """What the activation makes of logits: a softmax, of a single one the logistic function."""
    if len(logits) == 1:
        return [1 / (1 + math.exp(-logits[0]))]
    powers = [math.exp(logit - max(logits)) for logit in logits]
    return [power / sum(powers) for power in powers]


def _stems(text: str) -> set[str]:
    return {word[:4] for word in re.findall(r"\w+", text.lower()) if word not in _COMMON}
