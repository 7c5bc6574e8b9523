"""Plots of a server's run as small inline SVG: latencies, their distributions, throughput, memory and queue.

Colours come from the page's style sheet, so that they can be read in the dark too; points carry no style of
their own, because the page's content security policy refuses inline styles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from pytest_vllm.report.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Point = tuple[float, float]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480, 256, 48, 12, 26, 52
#: Colours of the style sheet; further series are left out.
MOST = 6
LONGEST = 22
GIB = 1024**3


@dataclass(frozen=True)
class Series:
    """One line or cloud of a plot.

    Args:
        name: for the legend.
        points: x and y.
        kind: `line`, `dots`, `steps`, or `ceiling`, a dashed line.
        spans: lower and upper end per point, drawn as a bar.
    """

    name: str
    points: Sequence[Point]
    kind: str = "line"
    spans: Sequence[Point] = ()


def plots(found: Mapping[str, Any]) -> list[str]:
    """The SVGs of a server's `plots` in `report.json`; what was not measured has none."""
    loads = found.get("loads", [])
    made = [
        chart("time to the first token, over the load", "s", "s", _each(loads, "ttft_over_time", "dots")),
        chart("time to the first token, share of requests", "s", "", _each(loads, "ttft_shares", "steps")),
        chart("time between tokens, share of all", "s", "", _each(loads, "itl_shares", "steps")),
        chart("throughput by streams", "streams", "tok/s", _throughput(loads)),
        chart("KV cache in use", "s", "%", _gauge(found, "KV cache", "kv", 100)),
        chart(
            "requests in the server",
            "s",
            "",
            [*_gauge(found, "running", "running"), *_gauge(found, "waiting", "waiting")],
        ),
        chart(
            "memory",
            "s",
            "GiB",
            [
                *_gauge(found, "accelerator", "used", 1 / GIB),
                *_gauge(found, "main memory", "resident", 1 / GIB),
            ],
        ),
    ]
    return [one for one in made if one]


def chart(title: str, x_unit: str, y_unit: str, series: Sequence[Series]) -> str:
    """One plot; empty when there is nothing to draw. Both axes begin at zero."""
    drawn = [one for one in series if one.points][:MOST]
    if not drawn or sum(len(one.points) for one in drawn) < 2:
        return ""
    xs = [x for one in drawn for x, _ in one.points]
    ys = [y for one in drawn for pair in (*one.points, *_ends(one)) for y in pair[1:]]
    across, up = _end(max(xs)), _end(max(ys))
    unit = f", {y_unit}" if y_unit else ""
    parts = [f'<text class="title" x="{LEFT}" y="12">{escape(title + unit)}</text>']
    parts += _axes(across, up, x_unit)
    parts += _legend(drawn)
    for place, one in enumerate(drawn):
        parts += _drawn(one, place, across, up)
    label = f"{title}: {', '.join(one.name for one in drawn)}"
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f"aria-label={quoteattr(printable(label))}>{''.join(parts)}</svg>"
    )


def _each(loads: Sequence[Mapping[str, Any]], name: str, kind: str) -> list[Series]:
    return [Series(one["name"], [tuple(p) for p in one[name]], kind) for one in loads if one.get(name)]


def _throughput(loads: Sequence[Mapping[str, Any]]) -> list[Series]:
    rows = sorted((one["streams"], one["rate"], one.get("ceiling")) for one in loads if one.get("rate"))
    measured = [(float(streams), rate[0]) for streams, rate, _ in rows]
    ceilings = [(float(streams), ceiling) for streams, _, ceiling in rows if ceiling]
    spans = [(rate[1], rate[2]) for _, rate, _ in rows]
    return [Series("measured", measured, "line", spans), Series("ceiling", ceilings, "ceiling")]


def _gauge(found: Mapping[str, Any], title: str, name: str, factor: float = 1.0) -> list[Series]:
    rows = found.get("timeline", [])
    points = [(row["at"], row[name] * factor) for row in rows if row.get(name) is not None]
    return [Series(title, points)] if points else []


def _ends(one: Series) -> Iterator[tuple[float, float, float]]:
    for low, high in one.spans:
        yield 0.0, low, high


def _x(value: float, across: float) -> float:
    return LEFT + value / across * (WIDTH - LEFT - RIGHT)


def _y(value: float, up: float) -> float:
    return HEIGHT - BOTTOM - value / up * (HEIGHT - TOP - BOTTOM)


def _step(value: float) -> float:
    """Between two ticks: 1, 2, 2.5 or 5 times a power of ten, so that at most five reach the value."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value / 5))
    return next(power * step for step in (1, 2, 2.5, 5, 10) if power * step * 5 >= value * 0.9999)


def _end(value: float) -> float:
    step = _step(value)
    return step * max(1, math.ceil(value / step - 1e-4))


def _ticks(end: float, step: float) -> list[float]:
    return [step * place for place in range(round(end / step) + 1)]


def _axes(across: float, up: float, x_unit: str) -> Iterator[str]:
    base, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for value in _ticks(up, _step(up)):
        y = _y(value, up)
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>'
        yield f'<text class="y" x="{LEFT - 4}" y="{y + 3:.1f}">{value:,.6g}</text>'
    ticks = _ticks(across, _step(across))
    for value in ticks[:-1]:
        yield f'<text class="x" x="{_x(value, across):.1f}" y="{base + 13}">{value:,.6g}</text>'
    yield f'<text class="y" x="{right}" y="{base + 13}">{ticks[-1]:,.6g} {escape(x_unit)}</text>'


def _legend(series: Sequence[Series]) -> Iterator[str]:
    """Three names in a row."""
    wide = (WIDTH - LEFT - RIGHT) // 3
    for place, one in enumerate(series):
        row, column = divmod(place, 3)
        x, y = LEFT + column * wide, HEIGHT - 28 + 14 * row
        yield f'<rect class="s{place}" x="{x}" y="{y}" width="8" height="8"/>'
        yield f'<text x="{x + 11}" y="{y + 8}">{escape(printable(one.name)[:LONGEST])}</text>'


def _drawn(one: Series, place: int, across: float, up: float) -> Iterator[str]:
    spots = [(_x(x, across), _y(y, up)) for x, y in one.points]
    for (x, _), (low, high) in zip(spots, one.spans, strict=False):
        top, bottom = _y(high, up), _y(low, up)
        yield f'<line class="s{place} span" x1="{x:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{bottom:.1f}"/>'
    if one.kind == "dots":
        yield from (f'<circle class="s{place}" cx="{x:.1f}" cy="{y:.1f}" r="1.8"/>' for x, y in spots)
        return
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    dashed = " dashed" if one.kind == "ceiling" else ""
    yield f'<polyline class="s{place}{dashed}" points="{path}"/>'
