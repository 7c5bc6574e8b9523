"""What the matrix promises of defects and checks, and which of it does not hold."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from tests.defects.outcome import bare

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.defects.outcome import Outcome

#: So many checks of other areas, at most, may fail beside those that a defect breaks.
MOST_UNRELATED = 10
#: Of so many defects the first cause names the area.
DIAGNOSED = 0.98
#: So many causes has a defect, in the median.
CAUSES = 1


def broken(outcomes: Sequence[Outcome], by_check: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """A line for each promise that does not hold.

    Args:
        outcomes: of the defects.
        by_check: the defects under which each check fails, by its id.
    """
    yield from (f"{one.defect} is not caught" for one in outcomes if not one.caught)
    yield from (f"no defect breaks {check}" for check, defects in by_check.items() if not defects)
    for one in outcomes:
        failing = {bare(key) for key in (*one.failed, *one.advisory)}
        if not one.boot and not set(one.expected) & failing:
            yield f"{one.defect} is caught by none of the checks that it names: {', '.join(one.expected)}"
        if len(one.unrelated) > MOST_UNRELATED:
            others = ", ".join(one.unrelated)
            yield f"{one.defect} breaks {len(one.unrelated)} checks of other areas: {others}"
    astray = [one.defect for one in outcomes if not one.diagnosed]
    if len(astray) > (1 - DIAGNOSED) * len(outcomes):
        yield f"the verdict names another area first for {len(astray)} defects: {', '.join(astray)}"
    counts = [one.causes for one in outcomes if one.causes]
    if counts and median(counts) > CAUSES:
        yield f"one defect has {median(counts):g} causes in the median"
