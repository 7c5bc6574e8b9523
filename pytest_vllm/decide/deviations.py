"""What an answer deviates in, by the words of a failing check: a closed list of subjects, the narrower first.

Checks say in their own words what they saw. Two of them that speak of the same part of an answer, such as the
arguments of a call, speak of the same kind of deviation.
"""

from __future__ import annotations

import re

#: What is said of no part in particular.
GENERAL = ""

_SUBJECTS = (
    ("log probabilities", r"log ?prob|probabilit"),
    ("arguments of a call", r"argument|propert(y|ies)\b"),
    ("calls of tools", r"\bcalls?\b|\btools?\b|function"),
    ("reasoning", r"reasoning|thought|thinking"),
    ("finish reasons", r"finish|\bstop(s|ped)?\b|\blength\b|incomplete|completed|cut short"),
    ("counted tokens", r"usage|billed|count(s|ed)?\b|tokens?\b"),
    ("ids", r"\bids?\b"),
    ("order and indices", r"ind(ex|ices)|numbered|order"),
    ("times", r"created|seconds|\bms\b|tok/s|dated"),
    ("names of the model", r"model"),
    ("errors and refusals", r"refus|error|40\d|envelope"),
    ("end and framing of a stream", r"\[DONE\]|event|frame|framing|chunk|piece"),
    ("form of an answer", r"schema|shape|fields|\bJSON\b|content-type"),
    ("text of an answer", r"\btext|streamed|content|word"),
)
_KNOWN = tuple((words, re.compile(pattern, re.IGNORECASE)) for words, pattern in _SUBJECTS)


def subject_of(fact: str, reason: str) -> str:
    """The part of an answer that a failing check speaks of; `GENERAL` where it names none.

    The requirement is asked first: what was observed quotes what a server said, and that may be any word.

    Args:
        fact: the requirement.
        reason: what was observed instead.
    """
    said = reason.split("\n", 1)[0][:200]
    return _named(fact) or _named(said)


def _named(text: str) -> str:
    return next((words for words, pattern in _KNOWN if pattern.search(text)), GENERAL)
