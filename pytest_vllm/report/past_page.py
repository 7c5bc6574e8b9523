"""A profile's history as one page, in the look of the report. A view of the rows of `compare.history`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from pytest_vllm.report.html import rendered
from pytest_vllm.report.plots import Series, chart

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: Figures that are drawn, those that most runs have first.
MOST_PLOTS = 12
UNITS = {"decode-tok-s": "tok/s", "aggregate-tok-s": "tok/s", "prefill-tok-s": "tok/s", "ttft": "s"}
START = "seconds to the start"


def page(
    profile: str,
    table: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    changes: Sequence[Mapping[str, Any]],
) -> str:
    """The HTML page of a profile's runs: where figures changed, a plot of each, the table.

    Args:
        profile: its name.
        table: rows of `compare.history`, oldest first.
        columns: the speeds of the table.
        changes: of `compare.history`.
    """
    return rendered(
        "past.html.j2",
        {"profile": profile, "runs": list(reversed(table)), "columns": columns, "changes": changes},
        plots=[Markup(one) for one in drawn(table, changes)],  # noqa: S704 - our own, escaped where it is made
    )


def drawn(table: Sequence[Mapping[str, Any]], changes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A plot for each figure over the runs: a line for each level, in a colour of its own."""
    names = {name: sum(name in row["figures"] for row in table) for row in table for name in row["figures"]}
    wanted = sorted(names, key=lambda name: (-names[name], name))[:MOST_PLOTS]
    for name in [*wanted, "start"]:
        firsts = {one["run"]: one for one in changes if one["figure"] == name}
        series = list(_levels(table, name, firsts))
        unit = "s" if name == "start" else UNITS.get(name.partition(" of ")[0], "")
        plot = chart(START if name == "start" else name, "run", unit, series)
        if plot:
            yield plot


def _levels(
    table: Sequence[Mapping[str, Any]], name: str, firsts: Mapping[str, Mapping[str, Any]]
) -> Iterator[Series]:
    """The points of a figure, cut where its level changed, without runs that are not like the others."""
    points: list[tuple[float, float]] = []
    level = "measured"
    for place, row in enumerate(table, 1):
        value = row["start"] if name == "start" else row["figures"].get(name)
        if value is None or row["mark"] not in ("", "partial"):
            continue
        if row["run"] in firsts and points:
            yield Series(level, points)
            points, level = [], f"from run {place} on, {firsts[row['run']]['share']:+.0%}"
        points.append((float(place), float(value)))
    yield Series(level, points)
