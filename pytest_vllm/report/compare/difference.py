"""What differs between two runs, one by one, and what each difference means for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Weight(StrEnum):
    """Whom a difference concerns, heaviest first."""

    BREAKS = "breaks clients"
    BEHAVIOUR = "behaviour"
    SPEED = "speed"
    INFO = "for information"


@dataclass(frozen=True)
class Difference:
    """One difference.

    Args:
        weight: whom it concerns.
        area: one of `AREAS`.
        what: the subject, as short as a name.
        before: what it was; empty where there was nothing.
        after: what it is; empty where there is nothing.
        means: the consequence, in words.
        source: the release or thread that made it, where the facts know it.
        change: of a verdict: broken, fixed, changed, new or gone.
        level: of a verdict: MUST, SHOULD or INFO.
    """

    weight: Weight
    area: str
    what: str
    before: str = ""
    after: str = ""
    means: str = ""
    source: str = ""
    change: str = ""
    level: str = ""

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "weight": str(self.weight)}


ORDER = tuple(Weight)
AREAS = (
    "start",
    "verdicts",
    "requests",
    "fields",
    "events",
    "routes",
    "parameters",
    "metrics",
    "headers",
    "flags",
    "answers",
    "speed",
    "figures",
    "log",
    "identity",
)


def ordered(found: list[Difference]) -> list[Difference]:
    """Heaviest first, then by area and name."""
    return sorted(
        found, key=lambda one: (ORDER.index(one.weight), AREAS.index(one.area), one.change, one.what)
    )
