"""When the client was held up: it did not look at its connections, though it was to. Pure.

A process that the machine does not let run for a second sends nothing new in it, and finds afterwards in one
lump what came meanwhile. The server went on; what such a time shows is the client.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Span = tuple[float, float]


def joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same in order, those that touch made one."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return tuple(found)


def left(window: Span, held: Sequence[Span]) -> tuple[Span, ...]:
    """The pieces of a window in which nothing was held up.

    Args:
        window: from and to.
        held: in order, as `joined` gives them.
    """
    begin, end = window
    found = []
    for start, stop in held:
        if start > begin:
            found.append((begin, min(start, end)))
        begin = max(begin, stop)
        if begin >= end:
            break
    if begin < end:
        found.append((begin, end))
    return tuple(found)


def length(spans: Iterable[Span]) -> float:
    """How long they are together."""
    return sum(end - begin for begin, end in spans)


def touches(begin: float, end: float, held: Sequence[Span]) -> bool:
    """Whether something was held up between two moments."""
    at = bisect_left(held, end, key=lambda one: one[0])
    return at > 0 and held[at - 1][1] > begin
