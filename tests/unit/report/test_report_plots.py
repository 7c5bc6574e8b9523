"""Plots: what is drawn, what is left out, and that nothing in them can run."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

from pytest_vllm.report.plots import MOST, Series, chart, plots
from pytest_vllm.run.series import shares, thinned

FOUND: dict[str, Any] = {
    "timeline": [
        {"at": 0.0, "used": 0},
        {"at": 1.0, "used": 2**30, "kv": 0.5, "running": 3.0, "waiting": 1.0},
        {"at": 2.0, "used": 2**31, "kv": 0.0, "running": 0.0, "waiting": 0.0},
    ],
    "loads": [
        {
            "name": "aggregate[8]",
            "streams": 8,
            "ttft_over_time": [[0.0, 0.1], [1.0, 0.2]],
            "ttft_shares": [[0.1, 0.0], [0.2, 0.99]],
            "itl_shares": [[0.01, 0.0], [0.02, 0.99]],
            "rate": [100.0, 90.0, 110.0],
            "ceiling": 200.0,
        },
        {"name": "aggregate[32]", "streams": 32, "rate": [300.0, 290.0, 310.0], "ceiling": 700.0},
    ],
}


def test_every_plot_is_well_formed_and_unstyled() -> None:
    """The page's policy refuses inline styles, and a label of the server's is text."""
    hostile = {**FOUND, "loads": [{**FOUND["loads"][0], "name": "<script>&"}]}
    made = plots(FOUND) + plots(hostile)

    assert len(plots(FOUND)) == 7
    for svg in made:
        root = ET.fromstring(svg)  # noqa: S314 - our own
        assert root.tag == "svg"
        assert not [one for one in root.iter() if "style" in one.attrib or one.tag in ("script", "style")]


def test_the_ceiling_is_dashed_and_above() -> None:
    """Throughput has a measured line with its intervals and a dashed one."""
    svg = next(one for one in plots(FOUND) if "throughput by streams" in one)
    root = ET.fromstring(svg)  # noqa: S314 - our own
    measured, ceiling = (one for one in root.iter("polyline"))

    def heights(line: ET.Element) -> list[float]:
        return [float(point.split(",")[1]) for point in line.attrib["points"].split()]

    assert "dashed" in ceiling.attrib["class"]
    assert all(top < low for top, low in zip(heights(ceiling), heights(measured), strict=True))
    assert len([one for one in root.iter("line") if "span" in one.attrib.get("class", "")]) == 2


def test_nothing_measured_draws_nothing() -> None:
    """No empty axes; one reading is no line."""
    assert plots({}) == []
    assert plots({"timeline": [{"at": 0.0, "kv": 0.0}], "loads": []}) == []
    assert not chart("empty", "s", "", [Series("none", [])])


def test_colours_are_not_used_twice() -> None:
    """More series than colours are left out."""
    svg = chart("many", "s", "", [Series(str(n), [(0, n), (1, n)]) for n in range(MOST + 2)])

    assert svg.count("<polyline") == MOST


def test_thinning_keeps_both_ends() -> None:
    """300 of 10,000, evenly."""
    kept = thinned(range(10_000), 300)

    assert (kept[0], kept[-1], len(kept)) == (0, 9_999, 300)
    assert thinned([1, 2], 300) == [1, 2]


def test_a_distribution_ends_at_its_99th_percentile() -> None:
    """One stall among a thousand does not flatten the curve."""
    found = shares([0.01] * 995 + [9.0] * 5)

    assert found[-1] == [0.01, 0.99]
    assert shares([1.0]) == []
