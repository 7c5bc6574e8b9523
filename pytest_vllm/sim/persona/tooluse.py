"""When the persona calls tools, and with what."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.persona.schema import Filler

if TYPE_CHECKING:
    from pytest_vllm.sim.persona.turn import Turn

Call = tuple[str, dict[str, Any]]
_SMALL_TALK = re.compile(r"^\s*(hi|hello|hey|thanks|thank you|good morning)\b[^?]*$", re.IGNORECASE)
_COMMON = {
    "get",
    "set",
    "the",
    "a",
    "an",
    "of",
    "for",
    "in",
    "to",
    "and",
    "is",
    "what",
    "current",
    "with",
    "by",
    "or",
}
_SENTENCE = re.compile(r'\bfirst say "([^"]+)"', re.IGNORECASE)
_PLACES = re.compile(r"\b(?:in|for|of|at|and|,) ([A-Z][a-zà-ÿ]+(?: [A-Z][a-z]+)?)")


def calls_for(turn: Turn) -> list[Call]:
    """The calls that a turn makes; none when it is answered in words."""
    if not turn.tools:
        return []
    functions = [tool.get("function", tool) for tool in turn.tools]
    if isinstance(turn.choice, dict):
        name = turn.choice.get("function", turn.choice)["name"]
        functions = [function for function in functions if function["name"] == name]
        return [_call(turn, functions[0])]
    if turn.choice != "required" and _answered(turn):
        return []
    scored = [(_fit(turn, function), -number, function) for number, function in enumerate(functions)]
    best = max(scored, key=lambda entry: entry[:2])
    if best[0] <= 0 and turn.choice != "required":
        return []
    return _all_calls(turn, scored, best[2])


def words_before(turn: Turn) -> str:
    """What is said before the calls: a sentence that was asked for, where the model may speak at all."""
    found = _SENTENCE.search(turn.asked) if turn.choice in (None, "auto") else None
    return f"{found[1]}\n" if found else ""


def _answered(turn: Turn) -> bool:
    last = turn.messages[-1] if turn.messages else {}
    return last.get("role") in ("tool", "function") or bool(_SMALL_TALK.match(turn.asked))


def _fit(turn: Turn, function: dict[str, Any]) -> int:
    asked = set(re.findall(r"[a-z]+", turn.asked.lower()))
    if function["name"].lower() in turn.asked.lower():
        return 100
    named = set(re.findall(r"[a-z]+", function["name"].lower().replace("_", " "))) - _COMMON
    described = set(re.findall(r"[a-z]+", str(function.get("description") or "").lower())) - _COMMON
    hits = sum(3 for word in named if any(word[:5] == other[:5] for other in asked))
    hits += sum(1 for word in described if len(word) > 3 and word in asked)
    if re.search(r"\b(call|use|invoke)\b.*\b(tool|function)", turn.asked, re.IGNORECASE):
        hits += 1
    return hits


def _all_calls(turn: Turn, scored: list[tuple[int, int, dict[str, Any]]], best: dict[str, Any]) -> list[Call]:
    named = [function for score, _, function in scored if score >= 100]
    if len(named) > 1 and turn.parallel:
        return [_call(turn, function) for function in named]
    first = _call(turn, best)
    places = list(dict.fromkeys(_PLACES.findall(turn.asked)))
    slot = next((key for key in first[1] if re.search(r"city|location|place|town", key, re.IGNORECASE)), None)
    if slot and len(places) > 1 and turn.parallel and isinstance(first[1][slot], str):
        return [(first[0], {**first[1], slot: place}) for place in places]
    return [first]


def _call(turn: Turn, function: dict[str, Any]) -> Call:
    schema = function.get("parameters") or {}
    value = Filler(turn, schema).value({"type": "object", **schema}) if schema else {}
    return function["name"], value if isinstance(value, dict) else {}
