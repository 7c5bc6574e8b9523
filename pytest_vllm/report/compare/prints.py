"""Prints of what is not kept: hashes of texts, and chains of them that show where two texts part."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Characters of a chain for each unit: 12 bits, so that a difference shows at once in 4095 of 4096 cases.
EACH = 2
#: Units of one text that a chain covers; what follows is one print at the end.
LONGEST = 96


def print_of(value: Any, length: int = 7) -> str:
    """A print of any JSON value: equal values give equal prints. `length` characters of 6 bits each."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return _short(hashlib.blake2b(text.encode()).digest(), length)


def chain(units: Iterable[str]) -> str:
    """A print of every beginning of a text, `EACH` characters for each unit.

    Two texts have equal chains up to the unit at which they part. Units beyond `LONGEST` share one print.
    """
    running = hashlib.blake2b()
    found = []
    rest = False
    for number, unit in enumerate(units):
        running.update(unit.encode("utf-8", "surrogatepass") + b"\0")
        rest = number >= LONGEST
        if not rest:
            found.append(_short(running.digest(), EACH))
    return "".join(found) + (_short(running.digest(), EACH) if rest else "")


def parted(one: str, other: str) -> int | None:
    """The first unit (from 0) at which the texts of two chains differ; None where they are the same."""
    if one == other:
        return None
    ends = min(len(one), len(other)) // EACH
    for place in range(ends):
        if one[place * EACH : (place + 1) * EACH] != other[place * EACH : (place + 1) * EACH]:
            return place
    return ends


def _short(digest: bytes, length: int) -> str:
    return base64.urlsafe_b64encode(digest)[:length].decode()
