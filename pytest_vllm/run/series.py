"""What the plots of a report need of a server's folder: readings and measurements, thinned."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pytest_vllm.declare.measurements import Measurements
from pytest_vllm.run.gauges import Reading, read_timeline
from pytest_vllm.wire.recording import Undecided

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_vllm.measure.measured import Measured
    from pytest_vllm.profile.derived import Figures

MOST = 300
SHARES = 60


def plotted(folder: Path, figures: Figures | None) -> dict[str, Any]:
    """Plain values for `report.json`: `timeline` and `loads`. Times are seconds, memory is bytes.

    Args:
        folder: the server's.
        figures: ceilings to draw beside what was measured.
    """
    readings = read_timeline(folder)
    kept = Measurements(folder)
    measured = [one for key in kept.keys() if (one := kept.get(key)).samples]  # noqa: SIM118 - no mapping
    return {
        "timeline": [_reading(one) for one in thinned(readings)],
        "loads": [_load(one, figures) for one in measured],
    }


def thinned(values: Sequence[Any], most: int = MOST) -> Sequence[Any]:
    """At most so many of them, evenly spaced, the last one included."""
    if len(values) <= most:
        return values
    step = (len(values) - 1) / (most - 1)
    return [values[round(place * step)] for place in range(most)]


def _reading(one: Reading) -> dict[str, Any]:
    used = one.total - one.free if one.total is not None and one.free is not None else None
    found = {
        "at": one.at,
        "used": used,
        "resident": one.resident,
        "kv": one.kv,
        "running": one.running,
        "waiting": one.waiting,
    }
    return {name: value for name, value in found.items() if value is not None}


def _load(one: Measured, figures: Figures | None) -> dict[str, Any]:
    good = [sample for sample in one.samples if sample.good and sample.ttft is not None]
    found: dict[str, Any] = {
        "name": one.key.removeprefix("throughput."),
        "streams": one.workload.streams,
        "ttft_over_time": [[_short(s.intended), _short(s.ttft or 0.0)] for s in thinned(good)],
        "ttft_shares": shares(one.values("ttft")),
        "itl_shares": shares(one.values("itl")),
    }
    if ".aggregate" in one.key:
        try:
            interval = one.interval("aggregate-tok-s")
        except Undecided:
            return found
        ends = (interval.value, interval.low, interval.high)
        if all(map(math.isfinite, ends)):
            found["rate"] = [_short(value) for value in ends]
        if figures is not None:
            tokens = [s.prompt_tokens + s.tokens / 2 for s in good]
            context = round(sum(tokens) / len(tokens)) if tokens else 0
            found["ceiling"] = _short(figures.aggregate_ceiling(one.workload.streams, context or 1))
    return found


def shares(values: Sequence[float], most: int = SHARES) -> list[list[float]]:
    """The distribution of values up to its 99th percentile: value and the share that is not above it."""
    ordered = sorted(values)
    if len(ordered) < 2:
        return []
    places = [place / most for place in range(most)] + [0.99]
    last = len(ordered) - 1
    return [[_short(ordered[round(place * last)]), round(place, 4)] for place in places]


def _short(value: float) -> float:
    return float(f"{value:.4g}")
