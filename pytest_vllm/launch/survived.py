"""Errors that a start survived: the same process went on to a later phase, and something else ended it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.launch.logtext import owner
from pytest_vllm.launch.phases import ORDER, step_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.launch.tracebacks import Raised

_SAYS = re.compile(r"^(?:\([^)]*\) ?)*INFO\b")


def without_survived(errors: Sequence[Raised], lines: Sequence[str]) -> Sequence[Raised]:
    """The errors, those that their process survived set aside; all as they were where nothing else failed.

    Args:
        errors: what the lines raise, in their order.
        lines: the log, as `logtext.spread` gives it.

    A plugin that cannot be loaded, for instance, is logged with its traceback, and the start goes on.
    """
    own = {one.number for one in errors if not one.wrapper}
    further = _further(lines) if len(own) > 1 else {}
    gone = {number for number in own if further.get(owner(lines[number - 1]), 0) > number}
    if not gone or gone == own:
        return errors
    return [replace(one, aside=True) if one.number in gone else one for one in errors]


def survived_lines(errors: Sequence[Raised], lines: Sequence[str]) -> frozenset[int]:
    """Numbers of lines of no error, behind which their process went on and something was raised."""
    own = [one.number for one in errors if not one.wrapper]
    further = _further(lines) if own else {}
    last = max(own, default=0)
    named = set(own)
    return frozenset(
        number
        for number, line in enumerate(lines[: last - 1], 1)
        if number not in named and further.get(owner(line), 0) > number
    )


def _further(lines: Sequence[str]) -> dict[str, int]:
    """The number of the line in which each process says last that the start came into a further phase."""
    found: dict[str, int] = {}
    far = 0
    for number, line in enumerate(lines, 1):
        step = step_of(line) if _SAYS.match(line) else None
        if step is not None and ORDER.index(step.phase) > far:
            far = ORDER.index(step.phase)
            found[owner(line)] = number
    return found
