"""Bars, lanes and colours of the exchanges over time."""

from __future__ import annotations

import re
from typing import Any

from pytest_vllm.report.timeline import timeline


def row(started: float, seconds: float, **more: Any) -> dict[str, Any]:
    base = {
        "key": "k",
        "method": "GET",
        "path": "/",
        "status": 200,
        "headers_at": 0.0,
        "error": "",
        "aborted": False,
    }
    return {**base, "started": started, "seconds": seconds, **more}


def test_exchanges_that_overlap_lie_in_different_lanes() -> None:
    """A lane is used again once it is free."""
    svg = timeline([row(0, 2), row(1, 2), row(2, 1), row(2.5, 1)])

    (waits,) = re.findall(r'class="wait" d="([^"]+)"', svg)
    assert waits == "M0 24h823M274 40h549M686 56h274", "the third follows the first without a gap"


def test_thousands_of_exchanges_stay_small() -> None:
    """Two thousand bars of 32 lanes take less than 50 kB, and are one drawing for each colour."""
    rows = [row(n // 32 * 0.5, 0.3 + n % 7 / 30, headers_at=0.1) for n in range(2000)]

    svg = timeline(rows)
    assert len(svg) < 50_000
    assert svg.count("<path") == 2


def test_lost_and_refused_exchanges_are_marked() -> None:
    """5xx, no response and a broken one are lost; 4xx is refused; an abort on purpose is neither."""
    rows = [
        row(0, 1),
        row(0, 1, status=404),
        row(0, 1, status=None),
        row(0, 1, error="reset"),
        row(0, 1, error="closed", aborted=True),
    ]

    svg = timeline(rows)
    assert re.findall(r'class="bar (\w+)"', svg) == ["answered", "refused", "lost", "lost"]
    assert "2 exchanges, answered" in svg


def test_no_exchange_no_timeline() -> None:
    """Nothing recorded, nothing drawn."""
    assert timeline([]) == ""


def test_a_timeline_of_no_duration_is_drawn() -> None:
    """Recordings without times do not divide by zero."""
    assert "nan" not in timeline([row(0, 0)])
