"""How this suite writes what it found."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST = 6


def listed(faults: Sequence[str]) -> str:
    """A list of faults, cut after some."""
    more = f" … and {len(faults) - MOST} more" if len(faults) > MOST else ""
    return "; ".join(faults[:MOST]) + more
