"""Plain conversation: the first skill that knows what to say answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.sim.persona.knowledge import arithmetic, fact
from pytest_vllm.sim.persona.words import sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.sim.persona.turn import Turn

_QUOTED = r"[\"'\u201c\u2018`]([^\"'\u201d\u2019`]+)[\"'\u201d\u2019`]"
_SAY = re.compile(
    r"(?:repeat|reply|respond|answer|say|echo|write|output|print|return)\b[^.\n]*?"
    r"(?:with|only|exactly|word|phrase|text|following|this|code|:)[^.\n]*?" + _QUOTED,
    re.IGNORECASE,
)
_SAY_BARE = re.compile(
    r"(?:repeat after me|reply with exactly|say exactly|repeat this(?: text)?|repeat the following(?: "
    r"text)?|echo)"
    r"(?: exactly)?:\s*(.+)",
    re.IGNORECASE | re.DOTALL,
)
_SAY_WORD = re.compile(
    r"(?:reply|respond|answer|say)\b(?: only| just| exactly)*(?: with)?(?: only| just| exactly)*"
    r"(?: the)?(?: single| one)?(?: word| code| token| name)?(?: only)?:? ([A-Z][A-Z0-9_-]{1,40}|\w*\d\w*)\b"
)
#: Sentences of a long answer that nobody wished a length for.
LONG = 24
_NUMBERS = ("one", "two", "three", "four", "five", "six")
_SENTENCES = re.compile(rf"\bin ({'|'.join(_NUMBERS)}) (?:\w+ )?sentences?\b", re.IGNORECASE)
_COUNT = re.compile(r"count (?:up )?(?:from (\d+) )?(?:up )?to (\d+)", re.IGNORECASE)


def reply(turn: Turn) -> str:
    """What a friendly, short-spoken assistant says."""
    for skill in (_from_tool, _said, _seen, _counting, _recall, _long, fact, arithmetic):
        text = skill(turn)
        if text is not None:
            return text
    return turn.pick(
        [
            "I can help with that. Please tell me a little more about what you need.",
            "Sure, I can help with that. What would you like to know?",
            "Happy to help. Could you give me some more details?",
            "Of course. Tell me more, and I will do my best.",
        ]
    )


def filler(turn: Turn) -> Iterator[str]:
    """Sentences without end."""
    rng = turn.rng
    while True:
        yield f" {sentence(rng)}"


def _said(turn: Turn) -> str | None:
    for pattern in (_SAY, _SAY_BARE, _SAY_WORD):
        found = pattern.search(turn.asked)
        if found:
            return found[1].strip()
    return None


def _seen(turn: Turn) -> str | None:
    if not turn.colours or not re.search(r"colou?r", turn.asked, re.IGNORECASE):
        return None
    return f"The colour is {' and '.join(turn.colours)}."


def _counting(turn: Turn) -> str | None:
    found = _COUNT.search(turn.asked)
    if not found:
        return None
    first, last = int(found[1] or 1), min(int(found[2]), int(found[1] or 1) + 2000)
    return ", ".join(str(number) for number in range(first, last + 1))


def _recall(turn: Turn) -> str | None:
    question = re.search(
        r"what(?: is|'s| was) (?:my|the|our) ([\w ]{2,40}?)(?: that|\?| I |$)", turn.asked, re.IGNORECASE
    )
    if not question:
        return None
    thing = question[1].strip()
    told = re.compile(rf"(?:my|the|our) {re.escape(thing)} (?:is|was|are)[: ]+\"?([\w-]+)", re.IGNORECASE)
    for message in turn.messages:
        found = told.search(str(message.get("content") or ""))
        if found and not found[1].lower().startswith("what"):
            return f"Your {thing} is {found[1]}."
    return None


def _from_tool(turn: Turn) -> str | None:
    if not turn.messages or turn.messages[-1].get("role") not in ("tool", "function"):
        return None
    results = [
        str(message.get("content"))
        for message in turn.messages
        if message.get("role") in ("tool", "function")
    ]
    return f"According to the tool: {'; '.join(results)}"


def _long(turn: Turn) -> str | None:
    if not re.search(
        r"\b(story|essay|poem|paragraph|long|detail|explain|describe|list|write about)\b",
        turn.asked,
        re.IGNORECASE,
    ):
        return None
    rng = turn.rng
    wished = _SENTENCES.search(turn.asked)
    count = _NUMBERS.index(wished[1].lower()) + 1 if wished else LONG
    return " ".join(sentence(rng) for _ in range(count))
