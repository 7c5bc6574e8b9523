"""When the client was held up: it did not look at its connections, though it was to. Pure.

A process that the machine does not let run for a second sends nothing new in it, and finds afterwards in one
lump what came meanwhile. The server went on; what such a time shows is the client.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_vllm.measure.samples import Sample

Span = tuple[float, float]
#: Seconds before and after a stretch in which what was held up may still show: a server or a proxy gives a
#: client up that does not read, and its close is seen afterwards.
MARGIN = 5.0
#: Share of a measurement during which the client may have been held up.
HELD = 0.25


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


def too_little(window: Span, held: Sequence[Span], wanted: float = 0.0) -> bool:
    """Whether what is left of a window says too little of the server.

    Args:
        window: from and to; one that went on for longer because of it is not judged by its length.
        held: when the client was held up, in order.
        wanted: how much of it was to be measured; 0: all of it.
    """
    whole = window[1] - window[0]
    return length(left(window, held)) < (1 - HELD) * min(whole, wanted or whole)


def touches(begin: float, end: float, held: Sequence[Span]) -> bool:
    """Whether something was held up between two moments."""
    at = bisect_left(held, end, key=lambda one: one[0])
    return at > 0 and held[at - 1][1] > begin


def excused(samples: Iterable[Sample], held: Sequence[Span], speed: float = 1.0) -> list[Sample]:
    """Those that failed on their way while the client was held up, or soon before or after.

    Args:
        samples: requests, with times of the same clock as the spans.
        held: when the client was held up.
        speed: that clock's seconds per second of the wall.
    """
    margin = MARGIN * speed
    return [
        one
        for one in samples
        if one.lost and touches(min(one.intended, one.sent) - margin, one.end + margin, held)
    ]


def near(begin: float, end: float, held: Sequence[Span]) -> tuple[Span, ...]:
    """Those that lie in a window at least in part."""
    return tuple(one for one in held if one[0] < end and one[1] > begin)
