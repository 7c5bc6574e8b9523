"""Differences between the simulator and a real server that have a reason, and the rest."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.agree.told import from_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.agree.compare import Difference
    from tests.agree.told import Told

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"


@dataclass(frozen=True)
class Accepted:
    """Differences of one cause.

    Args:
        reason: why they are left, a sentence; the simulator's README holds it.
        where: version -> `exchange: part` of each; a `*` at the end stands for the rest, where that varies
            from run to run.
        perhaps: whether a run may show none of them.
    """

    reason: str
    where: Mapping[str, tuple[str, ...]]
    perhaps: bool = False


ACCEPTED = tuple(
    Accepted(
        one["reason"],
        {version: tuple(places) for version, places in one["where"].items()},
        one.get("perhaps", False),
    )
    for one in json.loads((HERE / "accepted-differences.json").read_text("utf-8"))
)


def recorded(version: str) -> dict[str, Told]:
    """What a real server of a version told; `python -m tests.agree VERSION --save` records it again."""
    return from_json((RECORDED / f"{version}.json").read_text("utf-8"))


def place(difference: Difference) -> str:
    """How the accepted name a difference."""
    return f"{difference.exchange}: {difference.part}"


def matches(where: str, difference: Difference) -> bool:
    """Whether an accepted place is that of a difference."""
    if where.endswith("*"):
        return place(difference).startswith(where.removesuffix("*"))
    return place(difference) == where


def unexplained(version: str, found: Iterable[Difference]) -> list[str]:
    """Differences without a reason, as people read them."""
    known = [where for one in ACCEPTED for where in one.where.get(version, ())]
    return [one.told for one in found if not any(matches(where, one) for where in known)]


def gone(version: str, found: Sequence[Difference]) -> list[str]:
    """Accepted differences that are none any more, but for those that a run may not show."""
    known = [where for one in ACCEPTED if not one.perhaps for where in one.where.get(version, ())]
    return [where for where in known if not any(matches(where, one) for one in found)]


def as_listed() -> list[str]:
    """The remaining differences as the README of the simulator lists them."""
    return [f"- {one.reason} ({' and '.join(one.where)})" for one in ACCEPTED]
