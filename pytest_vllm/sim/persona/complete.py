"""Plain continuation of a text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.sim.persona.knowledge import CAPITALS, arithmetic
from pytest_vllm.sim.persona.talk import reply
from pytest_vllm.sim.persona.words import sentence

if TYPE_CHECKING:
    from pytest_vllm.sim.persona.turn import Turn


def completion_of(turn: Turn) -> str:
    """How the text goes on."""
    text = turn.prompt
    if "<|im_start|>" in text:
        turn.messages = [
            {"role": role, "content": content}
            for role, content in re.findall(r"<\|im_start\|>(\w+)\n(.*?)(?:<\|im_end\|>|$)", text, re.DOTALL)
            if content.strip()
        ]
        return reply(turn)
    for skill in (_capital, _numbers, _letters, _sum):
        continued = skill(turn)
        if continued is not None:
            return continued
    if text.rstrip().endswith("?"):
        turn.messages = [{"role": "user", "content": text.strip().split("\n")[-1]}]
        return "\n" + reply(turn)
    rng = turn.rng
    return "".join(f" {sentence(rng)}" for _ in range(3))


def _capital(turn: Turn) -> str | None:
    found = re.search(r"capital of ([A-Za-z ]+?) is(?: called| named)?\s*$", turn.prompt)
    city = CAPITALS.get(found[1].lower()) if found else None
    if city is None:
        return None
    return turn.pick(
        [
            f" {city}. It is a large and lively city.",
            f" {city}, as many people know.",
            f" the city of {city}.",
        ]
    )


def _numbers(turn: Turn) -> str | None:
    found = re.search(r"(\d+)(, ?| )(\d+)\2(\d+)(\2?)\s*$", turn.prompt)
    if not found:
        return None
    first, second, last = int(found[1]), int(found[3]), int(found[4])
    if last - second != second - first:
        return None
    step, mark = last - second, found[2]
    following = [str(last + step * number) for number in range(1, 21)]
    return ("" if found[5] else mark) + mark.join(following)


def _letters(turn: Turn) -> str | None:
    found = re.search(r"\b([a-zA-Z])(,? )([a-zA-Z])\2([a-zA-Z])\2?\s*$", turn.prompt)
    if not found or ord(found[4]) - ord(found[3]) != 1 or ord(found[3]) - ord(found[1]) != 1:
        return None
    last = "z" if found[4].islower() else "Z"
    return found[2] + found[2].join(chr(code) for code in range(ord(found[4]) + 1, ord(last) + 1))


def _sum(turn: Turn) -> str | None:
    if not re.search(r"=\s*$", turn.prompt):
        return None
    turn.messages = [{"role": "user", "content": turn.prompt.strip().split("\n")[-1].rstrip("= ")}]
    answer = arithmetic(turn)
    number = re.search(r"-?[\d.]+(?=\D*$)", answer) if answer else None
    return f" {number[0].rstrip('.')}\n" if number else None
