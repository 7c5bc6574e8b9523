"""A covering array: few rows in which every pair of values that can go together does so at least once."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Row = dict[str, str]
    Pair = frozenset[tuple[str, str]]


def covering(values: Mapping[str, Sequence[str]], fits: Callable[[Row], bool]) -> list[Row]:
    """Rows that hold every pair, greedily: each begins with a missing pair and takes what covers most.

    Args:
        values: what each dimension can be, the usual value first.
        fits: whether a row, which may still lack dimensions, makes sense.
    """
    left = {
        frozenset({(a, x), (b, y)})
        for a, b in combinations(values, 2)
        for x, y in product(values[a], values[b])
        if fits({a: x, b: y})
    }
    ordered = sorted(left, key=sorted)
    rows: list[Row] = []
    for pair in ordered:
        if pair in left and (row := _completed(dict(sorted(pair)), values, fits, left)) is not None:
            rows.append(row)
            left -= _pairs(row)
    return rows


def _completed(
    row: Row,
    values: Mapping[str, Sequence[str]],
    fits: Callable[[Row], bool],
    left: set[frozenset[tuple[str, str]]],
) -> Row | None:
    """The row with every dimension; None where no value of one fits."""
    for name in values:
        if name in row:
            continue
        able = [value for value in values[name] if fits({**row, name: value})]
        if not able:
            return None
        new = {value: sum(frozenset({(name, value), pair}) in left for pair in row.items()) for value in able}
        row = {**row, name: max(able, key=lambda value: new[value])}
    return row


def _pairs(row: Row) -> set[Pair]:
    return {frozenset(pair) for pair in combinations(row.items(), 2)}
