"""Lists on the terminal, for people and for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def print_json(value: Any) -> None:
    """A JSON value, indented."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_rows(rows: list[dict[str, Any]], *, as_json: bool, hidden: Sequence[str] = ()) -> None:
    """Rows of like keys under a head, in columns as wide as they must be; all keys as JSON.

    Args:
        rows: the keys of the first give the head.
        as_json: print JSON instead.
        hidden: keys that only JSON shows.
    """
    if as_json:
        print_json(rows)
        return
    shown = [{key: _cell(value) for key, value in row.items() if key not in hidden} for row in rows]
    if not shown:
        return
    widths = {key: max(len(key), *(len(row[key]) for row in shown)) for key in shown[0]}
    for row in ({key: key for key in widths}, *shown):
        print("  ".join(row[key].ljust(width) for key, width in widths.items()).rstrip())


def _cell(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
