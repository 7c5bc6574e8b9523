"""The covering array holds every pair that can go together, in few rows."""

from __future__ import annotations

from itertools import combinations, product

from suites.pairs.covering import covering
from suites.pairs.exchanges import ROWS, VALUES, fits

SMALL = {"a": ["1", "2", "3"], "b": ["x", "y"], "c": ["p", "q", "r"]}


def missing(values: dict[str, list[str]], rows: list[dict[str, str]]) -> list[tuple[tuple[str, str], ...]]:
    """Pairs that no row has."""
    return [
        ((a, x), (b, y))
        for a, b in combinations(values, 2)
        for x, y in product(values[a], values[b])
        if not any(row[a] == x and row[b] == y for row in rows)
    ]


def test_every_pair_comes() -> None:
    rows = covering(SMALL, lambda _: True)

    assert missing(SMALL, rows) == []
    assert len(rows) <= 12  # 9 at least, 18 for all of them


def test_what_does_not_fit_never_comes() -> None:
    rows = covering(SMALL, lambda row: (row.get("a"), row.get("b")) != ("1", "x"))

    assert missing(SMALL, rows) == [(("a", "1"), ("b", "x"))]


def test_the_array_of_the_gate_is_complete_and_small() -> None:
    left = [
        pair
        for pair in missing(VALUES, ROWS)
        if any(fits({**dict(pair), **row}) for row in _rest(dict(pair)))
    ]

    assert left == []
    assert all(fits(row) for row in ROWS)
    assert len(ROWS) <= 60


def _rest(pair: dict[str, str]) -> list[dict[str, str]]:
    """All ways to fill the dimensions that the rules are about."""
    ruled = [
        name for name in ("route", "turns", "tools", "constraint", "choices", "drawing") if name not in pair
    ]
    return [dict(zip(ruled, chosen, strict=True)) for chosen in product(*(VALUES[name] for name in ruled))]
