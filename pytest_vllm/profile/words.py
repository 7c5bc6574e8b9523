"""Wording that every message of a profile shares."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing when no known name is near."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def one_of(known: Sequence[str], *, limit: int = 24) -> str:
    """`one of a, b, c`, shortened when there are very many."""
    shown = ", ".join(known[:limit])
    return f"one of {shown}" + (f" and {len(known) - limit} more" if len(known) > limit else "")


def unknown(what: str, name: str, known: Sequence[str], where: str = "") -> str:
    """`unknown key 'modle' in [server]; did you mean 'model'? (one of api-key, args, …)`."""
    place = f" in {where}" if where else ""
    return f"unknown {what} {name!r}{place}{did_you_mean(name, known)} ({one_of(known)})"
