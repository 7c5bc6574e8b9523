"""A long log without its repetitions: a server that runs for weeks writes few lines, a million times."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Up to that many lines a log is read as it is.
LONG = 20_000
#: How often a line of one shape is kept, at its first places and at its last ones.
KEPT = 8
_MOST = 20_000
_WIDTH = 300
_VARYING = str.maketrans("", "", "0123456789abcdefABCDEF")


def digest(lines: Sequence[str]) -> list[tuple[int, str]]:
    """The lines that can tell something, with their numbers from 1; all of them for a log of usual length.

    Two lines have the same shape when they differ in figures and letters of hexadecimal numbers only (stamps,
    ids, rates): of such lines the first and the last ones are kept. Of what is left, when there is still too
    much, the begin and the end.
    """
    if len(lines) <= LONG:
        return list(enumerate(lines, 1))
    seen: dict[str, int] = {}
    last: dict[str, deque[int]] = {}
    kept: list[int] = []
    for number, line in enumerate(lines, 1):
        shape = line[:_WIDTH].translate(_VARYING)
        times = seen[shape] = seen.get(shape, 0) + 1
        if times <= KEPT:
            kept.append(number)
        elif times == KEPT + 1:
            last[shape] = deque((number,), KEPT)
        else:
            last[shape].append(number)
    kept = sorted([*kept, *(number for numbers in last.values() for number in numbers)])
    if len(kept) > _MOST:
        kept = [*kept[: _MOST // 2], *kept[-_MOST // 2 :]]
    return [(number, lines[number - 1]) for number in kept]
