"""Wording that every message of a profile shares."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


#: Names that a message lists at most.
MANY = 60


def one_of(known: Sequence[str]) -> str:
    """`one of a, b, c`, shortened when there are very many."""
    return f"one of {_listed(known)}"


def _listed(known: Sequence[str]) -> str:
    more = f" and {len(known) - MANY} more" if len(known) > MANY else ""
    return f"{', '.join(known[:MANY])}{more}"


def unknown(what: str, name: str, known: Sequence[str], where: str = "") -> str:
    """`unknown key 'modle' in [server]; did you mean 'model'? (one of api-key, args, …)`.

    With no name near it: `unknown key 'x' in [server]; there are api-key, args, …`
    """
    place = f" in {where}" if where else ""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    there = f"there {'is' if len(known) == 1 else 'are'} {_listed(known) or 'none'}"
    meant = f"did you mean {near[0]!r}? ({one_of(known)})" if near else there
    return f"unknown {what} {name!r}{place}; {meant}"
