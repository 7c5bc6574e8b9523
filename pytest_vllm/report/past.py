"""A profile's history as terminal text. A view of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.report.text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def lines(
    table: Sequence[Mapping[str, Any]], columns: Sequence[str], changes: Sequence[Mapping[str, Any]]
) -> list[str]:
    """The table, and a line for each change.

    Args:
        table: rows of `compare.history`.
        columns: the speeds to show.
        changes: of `compare.history`.
    """
    letters = {name: f"({chr(ord('a') + place)})" for place, name in enumerate(columns)}
    head = [
        "started",
        "run",
        "vLLM",
        "answer",
        "passed",
        "failed",
        "undecided",
        "start s",
        *letters.values(),
        "",
    ]
    body = [head, *(_cells(row, columns) for row in table)]
    widths = [max(len(row[place]) for row in body) for place in range(len(head))]
    shown = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in body
    ]
    shown += [f"{letter} {name}" for name, letter in letters.items()]
    if not changes:
        return [*map(printable, shown), "no figure changed its level for sure"]
    return [*map(printable, shown), "", "changes of level:", *(printable(_change(one)) for one in changes)]


def _cells(row: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    counts = [row[name] for name in ("passed", "failed", "undecided", "start")]
    figures = [row["figures"].get(name) for name in columns]
    cells = [*(_number(value) for value in counts), *(_number(value) for value in figures)]
    return [row["started"], row["run"], row["version"] or "?", row["answer"], *cells, row["mark"]]


def _number(value: float | None) -> str:
    if value is None:
        return "·"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if value < 1e5 else f"{value:,.0f}"


def _change(one: Mapping[str, Any]) -> str:
    was, now = one["versions"]
    version = f"vLLM {was} -> {now}" if was != now else f"vLLM {now}"
    return (
        f"  {one['figure']}: {one['before']:,.4g} -> {one['after']:,.4g} ({one['share']:+.1%}) from run "
        f"{one['run']} on ({one['started']}, {version})"
    )
