"""Where two recorded servers tell different things: one line per cause, not per path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.agree.told import Told

ABSENT = "-"


@dataclass(frozen=True)
class Difference:
    """One part of one exchange that two servers tell differently."""

    exchange: str
    part: str
    real: str
    sim: str

    @property
    def told(self) -> str:
        """For people."""
        return f"{self.exchange}: {self.part}\n  real {self.real}\n  sim  {self.sim}"


def differences(real: Mapping[str, Told], sim: Mapping[str, Told]) -> Iterator[Difference]:
    """Every difference, by exchange. One that only one of them recorded is a difference too."""
    for key in sorted({*real, *sim}):
        theirs, ours = real.get(key), sim.get(key)
        if theirs is None or ours is None:
            there = ["recorded" if one is not None else ABSENT for one in (theirs, ours)]
            yield Difference(key, "exchange", *there)
        elif theirs["status"] != ours["status"]:
            yield Difference(key, "status", _outcome(theirs), _outcome(ours))
        else:
            yield from _of_one(key, theirs, ours)


def _outcome(parts: Told) -> str:
    message = parts.get("body .error.message") or parts.get("body .message", "")
    return f"{parts['status']} {message}".rstrip()


def _of_one(key: str, theirs: Told, ours: Told) -> Iterator[Difference]:
    absent: list[str] = []
    kinds = {*theirs.get("order", "").split()} ^ {*ours.get("order", "").split()}
    for part in sorted({*theirs, *ours}):
        if part.startswith("event ") and part.split()[1] in kinds:
            continue  # `order` tells that there are no such events
        if any(part.startswith((f"{parent}.", f"{parent}[")) for parent in absent):
            continue
        pair = theirs.get(part, ABSENT), ours.get(part, ABSENT)
        if pair[0] != pair[1]:
            if ABSENT in pair:
                absent.append(part)
            yield Difference(key, part, *pair)
