"""When which exchange was under way: a small inline SVG, one bar per exchange, packed into lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from pytest_vllm.report.text import count, printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WIDTH, LANE, BAR, TOP = 960, 16, 12, 18
TICKS = 8
#: Bars of exchanges without an answer that say their name; the others are counted.
LOST, NAMED = "lost", 40
#: User units, of 960, below which two bars of a lane are drawn as one: less than a pixel apart.
APART = 1.0
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)


def timeline(exchanges: Sequence[Mapping[str, Any]]) -> str:
    """The SVG of a server's exchanges as `report.json` lists them; empty when there are none.

    The pale part of a bar is the time until the response head, the full part the time until its end.
    """
    if not exchanges:
        return ""
    whole = max([0.001, *(row["started"] + row["seconds"] for row in exchanges)])
    lanes = _lanes(exchanges)
    height = TOP + LANE * (max(lanes) + 1)
    scale = WIDTH / whole
    parts = [*_ticks(whole, scale, height)]
    placed = [(row, TOP + lane * LANE) for row, lane in zip(exchanges, lanes, strict=True)]
    lost = [one for one in placed if _kind(one[0]) == LOST]
    for kind in ("answered", "refused", LOST):
        parts += _bars(
            [one for one in placed if _kind(one[0]) == kind and one not in lost[:NAMED]], kind, scale
        )
    parts += [_bar(row, y, scale) for row, y in lost[:NAMED]]
    label = f"{count(len(exchanges), 'exchange')} over {whole:.2f} seconds"
    return (
        f'<svg class="timeline" viewBox="0 0 {WIDTH} {height}" role="img" aria-label={quoteattr(label)}>'
        f"{''.join(parts)}</svg>"
    )


def _lanes(exchanges: Sequence[Mapping[str, Any]]) -> list[int]:
    """For each exchange the first lane that is free when it starts."""
    free_at: list[float] = []
    lanes = []
    for row in exchanges:
        lane = next((n for n, at in enumerate(free_at) if at <= row["started"]), len(free_at))
        if lane == len(free_at):
            free_at.append(0.0)
        free_at[lane] = row["started"] + row["seconds"]
        lanes.append(lane)
    return lanes


def _ticks(whole: float, scale: float, height: int) -> list[str]:
    step = next((step for step in STEPS if whole / step <= TICKS), whole / TICKS)
    parts = []
    for number in range(int(whole / step) + 1):
        x = number * step * scale
        parts.append(f'<line class="tick" x1="{x:.1f}" y1="{TOP - 4}" x2="{x:.1f}" y2="{height}"/>')
        parts.append(f'<text class="tick" x="{x + 2:.1f}" y="{TOP - 6}">{number * step:g} s</text>')
    return parts


def _bars(placed: Sequence[tuple[Mapping[str, Any], int]], kind: str, scale: float) -> list[str]:
    """All bars of one colour as two shapes: a thousand bars of their own make a page that opens slowly."""
    if not placed:
        return []
    extents = [(y + BAR // 2, *_extent(row, scale)) for row, y in placed]
    waits = _lines([(y, x, x + width) for y, x, _, width in extents])
    rest = _lines([(y, x + wait, x + max(width, wait + 0.5)) for y, x, wait, width in extents])
    title = f"{count(len(placed), 'exchange')}, {kind}"
    shapes = f'<path class="wait" d="{waits}"/><path d="{rest}"/>'
    return [f'<g class="bar {kind}"><title>{escape(title)}</title>{shapes}</g>']


def _lines(spans: Sequence[tuple[int, float, float]]) -> str:
    """Horizontal lines as wide as a bar; those of one lane that nobody could see apart are one.

    Args:
        spans: the middle of the lane, where a bar begins and where it ends.
    """
    merged: list[tuple[int, float, float]] = []
    for y, begin, end in sorted(spans):
        lane, since, until = merged[-1] if merged else (-1, 0.0, 0.0)
        if lane == y and begin - until < APART:
            merged[-1] = (y, since, max(end, until))
        else:
            merged.append((y, begin, end))
    parts, at = [], (-1, 0)
    for y, begin, end in merged:
        left, right = round(begin), round(max(end, begin + 1))
        # from where the lane's last one ended: a page of thousands is a fifth smaller so
        parts.append(f"m{left - at[1]} 0h{right - left}" if at[0] == y else f"M{left} {y}h{right - left}")
        at = (y, right)
    return "".join(parts)


def _extent(row: Mapping[str, Any], scale: float) -> tuple[float, float, float]:
    """Where a bar begins, how wide its pale part is, and all of it, in user units."""
    width = max(row["seconds"] * scale, 1.0)
    wait = min((row["headers_at"] if row["headers_at"] is not None else row["seconds"]) * scale, width)
    return row["started"] * scale, wait, width


def _bar(row: Mapping[str, Any], y: int, scale: float) -> str:
    x, wait, width = _extent(row, scale)
    status = row["status"] if row["status"] is not None else row["error"] or "no response"
    title = f"{row['key']}: {row['method']} {row['path']}, {status}, {row['seconds']:.3f} s"
    kind = _kind(row)
    return (
        f'<g class="bar {kind}"><title>{escape(printable(title))}</title>'
        f'<rect class="wait" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2"/>'
        f'<rect x="{x + wait:.1f}" y="{y}" width="{max(width - wait, 0.5):.1f}" height="{BAR}" rx="2"/></g>'
    )


def _kind(row: Mapping[str, Any]) -> str:
    """How the bar is coloured: answered, refused (4xx), or lost (5xx, broken off, no response)."""
    if row["status"] is None or row["status"] >= 500 or (row["error"] and not row["aborted"]):
        return LOST
    return "refused" if row["status"] >= 400 else "answered"
