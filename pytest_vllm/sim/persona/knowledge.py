"""Facts and sums that the persona knows."""

from __future__ import annotations

import ast
import operator
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_vllm.sim.persona.turn import Turn

CAPITALS = {
    "france": "Paris", "germany": "Berlin", "italy": "Rome", "spain": "Madrid", "japan": "Tokyo",
    "norway": "Oslo", "sweden": "Stockholm", "finland": "Helsinki", "denmark": "Copenhagen",
    "poland": "Warsaw", "portugal": "Lisbon", "austria": "Vienna", "switzerland": "Bern", "greece": "Athens",
    "ireland": "Dublin", "england": "London", "the united kingdom": "London", "brazil": "Brasilia",
    "the united states": "Washington, D.C.", "canada": "Ottawa", "china": "Beijing", "india": "New Delhi",
    "russia": "Moscow", "egypt": "Cairo", "argentina": "Buenos Aires", "australia": "Canberra",
    "mexico": "Mexico City", "south korea": "Seoul", "the netherlands": "Amsterdam", "belgium": "Brussels",
    "hungary": "Budapest", "turkey": "Ankara", "kenya": "Nairobi", "peru": "Lima", "chile": "Santiago",
    "cuba": "Havana",
}  # fmt: skip
FACTS = (
    (r"color|colour.*sky|sky.*colou?r", "The sky is blue."),
    (r"largest planet|biggest planet", "The largest planet in the solar system is Jupiter."),
    (r"romeo and juliet", "Romeo and Juliet was written by William Shakespeare."),
    (r"opposite of hot", "The opposite of hot is cold."),
    (r"how many days.*week", "There are 7 days in a week."),
    (r"boiling point|water boil", "Water boils at 100 degrees Celsius at sea level."),
    (r"chemical (symbol|formula).*water|formula of water", "The chemical formula of water is H2O."),
    (r"first president", "The first president of the United States was George Washington."),
    (r"fastest land animal", "The fastest land animal is the cheetah."),
    (r"how many legs.*spider", "A spider has 8 legs."),
    (r"^\s*(hi|hello|hey)\b", "Hello! How can I help you today?"),
    (r"who are you|your name", "I am a helpful assistant."),
)
_OPERATORS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
}
_WORDS = {
    " plus ": "+",
    " minus ": "-",
    " times ": "*",
    " multiplied by ": "*",
    " divided by ": "/",
    "\u00d7": "*",
    "÷": "/",
}
_SUM = re.compile(r"-?\d[\d\s.()]*(?:[-+*/%x]\s*\(?-?\d[\d.\s()]*)+")


def fact(turn: Turn) -> str | None:
    """A known fact that the question asks for."""
    asked = turn.asked.lower()
    found = re.search(r"capital(?: city)? of ([a-z ]+)", asked)
    if found:
        for country in sorted(CAPITALS, key=len, reverse=True):
            if found[1].startswith(country):
                name, city = country.title().replace("The ", "the "), CAPITALS[country]
                if re.search(r"\bone word\b|only the (city|name)|just the (city|name)", asked):
                    return city
                return turn.pick(
                    [
                        f"The capital of {name} is {city}.",
                        f"{city} is the capital of {name}.",
                        f"It is {city}.",
                        f"{city}. It has been the capital of {name} for a long time.",
                    ]
                )
    for pattern, text in FACTS:
        if re.search(pattern, asked):
            return turn.pick([text, f"{text} Is there anything else?", f"Good question. {text}"])
    return None


def arithmetic(turn: Turn) -> str | None:
    """The result of a sum in the question."""
    asked = turn.asked
    for word, sign in _WORDS.items():
        asked = re.sub(re.escape(word), f" {sign} ", asked, flags=re.IGNORECASE)
    found = _SUM.search(asked)
    if not found:
        return None
    text = found[0].replace("x", "*").strip()
    try:
        value = evaluate(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError):
        return None
    number = f"{value:g}" if isinstance(value, float) and value != int(value) else str(int(value))
    if re.search(r"only (the )?(number|result|answer)|just the (number|result)", asked, re.IGNORECASE):
        return number
    return turn.pick([f"{found[0].strip()} = {number}", f"The answer is {number}.", f"That makes {number}."])


def evaluate(node: ast.AST) -> float:
    """The value of a sum of plain numbers. Raises ValueError for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return float(_OPERATORS[type(node.op)](evaluate(node.left), evaluate(node.right)))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return float(_OPERATORS[type(node.op)](evaluate(node.operand)))
    raise ValueError("no sum")
