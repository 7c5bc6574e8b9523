"""Lines that name a cause and stopped nothing: the start went on behind them, and an error ended it later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.launch.logtext import unprefixed
from pytest_vllm.launch.phases import ORDER, step_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.launch.tracebacks import Raised


def is_stray(number: int, errors: Sequence[Raised], texts: Sequence[str]) -> bool:
    """Whether a line is of no error, the start came further behind it, and another error ended it.

    Args:
        number: of the line, from 1.
        errors: what the log raises, in its order.
        texts: the log, as `logtext.spread` gives it.
    """
    if not stands_alone(number, errors, texts):
        return False
    far = _furthest(texts[:number])
    further = next(
        (n for n, text in enumerate(texts[number:], number + 1) if _phase(text) > far),
        0,
    )
    return bool(further) and any(one.number > further and not one.wrapper for one in errors)


def stands_alone(number: int, errors: Sequence[Raised], texts: Sequence[str]) -> bool:
    """Whether a line is no part of an error's own words; an error in a line alone is one of those."""
    return not any(_covers(one, number, texts) for one in errors if not is_remark(one, texts))


def is_remark(one: Raised, texts: Sequence[str]) -> bool:
    """Whether an error is a line alone: neither frames nor sources of a traceback stand above it."""
    above = next((unprefixed(text) for text in reversed(texts[: one.number - 1]) if text.strip()), "")
    return not one.frames and not above.startswith((" ", "Traceback", "The above", "During"))


def _covers(one: Raised, number: int, texts: Sequence[str]) -> bool:
    """Whether a line names an error, or is of its message."""
    if not one.number <= number <= one.number + len(one.text.split("\n")) + 1:
        return False
    return number == one.number or unprefixed(texts[number - 1]) in one.text


def _furthest(texts: Sequence[str]) -> int:
    return max((_phase(text) for text in texts), default=0)


def _phase(text: str) -> int:
    step = step_of(text)
    return ORDER.index(step.phase) if step else 0
