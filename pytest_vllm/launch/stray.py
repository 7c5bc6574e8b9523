"""Lines that name a cause and stopped nothing: the start went on behind them, and an error ended it later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.launch.logtext import unprefixed
from pytest_vllm.launch.phases import ORDER, step_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.launch.tracebacks import Raised


def got_over(errors: Sequence[Raised], texts: Sequence[str]) -> int:
    """Number of the last line, before the last error, in which the start came further; 0 when there is none.

    Args:
        errors: what the log raises, in its order.
        texts: the log, as `logtext.spread` gives it.
    """
    last = max((one.number for one in errors if not one.wrapper), default=0)
    far = further = 0
    for number, text in enumerate(texts[:last], 1):
        step = step_of(text)
        if step is not None and ORDER.index(step.phase) > far:
            far, further = ORDER.index(step.phase), number
    return further


def stands_alone(number: int, errors: Sequence[Raised], texts: Sequence[str]) -> bool:
    """Whether a line is no part of an error's own words; an error in a line alone is one of those."""
    return not any(covers(one, number, texts) and not is_remark(one, texts) for one in errors)


def is_remark(one: Raised, texts: Sequence[str]) -> bool:
    """Whether an error is a line alone: neither frames nor sources of a traceback stand above it."""
    if one.frames:
        return False
    numbers = range(one.number - 2, -1, -1)
    above = next((unprefixed(texts[n]) for n in numbers if texts[n].strip()), "")
    return not above.startswith((" ", "Traceback", "The above", "During"))


def covers(one: Raised, number: int, texts: Sequence[str]) -> bool:
    """Whether a line names an error, or is of its message."""
    if not one.number <= number <= one.number + one.text.count("\n") + 2:
        return False
    return number == one.number or unprefixed(texts[number - 1]) in one.text
