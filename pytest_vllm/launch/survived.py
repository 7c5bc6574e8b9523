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


def without_survived(
    errors: Sequence[Raised], lines: Sequence[str]
) -> tuple[Sequence[Raised], frozenset[int]]:
    """The errors, those that their process survived set aside; and numbers of lines that it survived too.

    Args:
        errors: what the lines raise, in their order.
        lines: the log, as `logtext.spread` gives it.

    A plugin that cannot be loaded, for instance, is logged with its traceback, and the start goes on. Errors
    stay as they were where nothing else failed; lines are of no error, and stand before the last one.
    """
    own = {one.number for one in errors if not one.wrapper}
    further = _further(lines) if own else {}
    gone = {number for number in own if further.get(owner(lines[number - 1]), 0) > number}
    if gone and gone != own:
        errors = [replace(one, aside=True) if one.number in gone else one for one in errors]
        own -= gone
    before = lines[: max(own, default=1) - 1]
    survived = (n for n, line in enumerate(before, 1) if further.get(owner(line), 0) > n)
    return errors, frozenset(survived) - own


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
