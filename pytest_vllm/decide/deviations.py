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


#: Subjects as a cause names them to people, before those above: narrower than what groups checks.
_TITLES = (
    ("log probabilities", r"log ?prob|probabilit"),
    ("drafted tokens", r"\bdraft"),
    ("length of the context", r"\bcontext length\b"),
    ("speeds", r"as fast as the profile|\bdecodes\b|faster|tokens per second"),
    ("times", r"as soon as|no later than|takes no longer|half second"),
    ("cache", r"\bcaches?\b|(?<!nothing )\bcached\b(?! or not)|cached_tokens|full blocks?\b|blocks before"),
    ("adapters", r"\badapters?\b|LoRA"),
    ("stop strings", r"\bstop (strings?|tokens?|words?)\b"),
    ("pieces of a stream", r"\bpieces?\b.*\bcome|\bcomes?\b.*\bpieces?\b"),
    ("order and indices", r"\bnumbered\b|\bcounted from\b"),
)
_COUNTED = re.compile(
    r"billed|usage|\bcount|limit|max_|min_|\bmany\b|\bmore\b|\bfewer\b|\bless\b|length|\bnumber of|"
    r"\bat (most|least)\b|\bexact|\ball\b|\bevery\b|\bsum\b|total|\bcosts?\b|"
    r"\bgrows\b|has prompt tokens|[0-9]",
    re.IGNORECASE,
)
_NAMED = tuple((words, re.compile(pattern, re.IGNORECASE)) for words, pattern in _TITLES)


def title_of(fact: str, reason: str) -> str:
    """The part of an answer that a cause names to people; `GENERAL` where it names none.

    Only words: what groups checks is `subject_of`, whose subjects are wide on purpose.

    Args:
        fact: the requirement.
        reason: what was observed instead.
    """
    for words, pattern in _NAMED:
        if pattern.search(fact):
            return words
    subject = subject_of(fact, reason)
    if subject == "counted tokens" and not _COUNTED.search(fact):
        return "tokens of an answer"
    return subject


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
