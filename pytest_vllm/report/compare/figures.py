"""Speeds, start, KV cache and memory of two runs, side by side.

A speed counts as slower or faster where the whole interval of the ratio lies beyond `LEAST` of the other:
what two runs of one server differ by, warm or cold, is not told as a change. The error is shared among all
speeds that are compared, so that a comparison of fifty does not cry wolf.
"""

from __future__ import annotations

import json
import math
import re
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING, Any

from pytest_vllm.measure.statistics import Interval, mean_interval, paired_interval, steady_interval
from pytest_vllm.report.compare.difference import Difference, Weight

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: Share by which a speed must differ for sure: two starts of one server differ by some of it.
LEAST = 0.05
#: Probability of one false change among all speeds of a comparison, each side.
ERROR = 0.01
#: Figures in seconds: less is better.
TIMES = ("ttft", "ttft-cached", "tpot", "e2e")
#: Figures that say what another one says.
_SAME_AS = {"tpot": "decode-tok-s", "ttft-cached": "ttft"}
_DRAWN = re.compile(r"[0-9a-f]{6,}")
#: Pairs of measurements in turns that a ratio needs, and so many of them that those far out are cut off.
LEAST_PAIRS, MANY_PAIRS = 4, 8
#: Requests alone on the server: how many are needed, and by how much all of them must differ.
PAIRS, ALONE_LEAST = 12, 0.25
#: The load that they are, which is asked of one server after the other.
ALONE = "recorded exchanges, alone on the server"
#: Figure -> (what it is, unit, share that counts, whether less is worse, consequence).
SIZES: dict[str, tuple[str, str, float, bool, str]] = {
    "kv-cache-tokens": ("KV cache", "tokens", 0.02, True, "fewer requests fit at once"),
    "memory-gib": ("memory of the accelerator, at most", "GiB", 0.05, False, "less is left for others"),
    "weights-gib": ("memory of the weights", "GiB", 0.02, False, "less is left for the KV cache"),
    "graphs-gib": ("memory of captured graphs", "GiB", 0.5, False, "less is left for the KV cache"),
    "main-memory-gib": ("main memory, at most", "GiB", 0.25, False, "the container's limit may be too low"),
}
#: Differences of memory below this many GiB say nothing.
SMALLEST = 0.25
#: A start that takes so many times as long, and so many seconds longer, is told.
SLOW_START, SLOW_SECONDS = 1.5, 20.0


def speeds(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every figure that both runs measured under the same load, as JSON rows.

    `load`, `figure`, `before` and `after` (value, low, high, n), `ratio` (value, low, high; above 1 is more),
    `change`: slower, faster or none; `why` there is no ratio, in words.
    """
    both = sorted(before.keys() & after.keys())
    shared = [
        (load, name, before[load]["figures"][name], after[load]["figures"][name])
        for load in both
        for name in before[load]["figures"]
        if name in after[load]["figures"]
    ]
    return [
        _speed(
            load, name, Interval(**was), Interval(**now), len(shared), why=_other(before[load], after[load])
        )
        for load, name, was, now in shared
    ]


def _other(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Why two loads are not the same; names that a load draws for itself in every run do not count."""
    one, other = (_DRAWN.sub("", json.dumps(load["workload"], sort_keys=True)) for load in (before, after))
    return "" if one == other else "measured under another load"


def _speed(load: str, name: str, was: Interval, now: Interval, many: int, *, why: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "load": load,
        "figure": name,
        "before": _ends(was),
        "after": _ends(now),
        "ratio": None,
        "change": "",
        "why": why,
    }
    if why or not _usable(was) or not _usable(now):
        return {**row, "why": why or "too few values"}
    ratio = _ratio(now, was, ERROR / many)
    return {**row, "ratio": _ends(ratio), "change": _change(name, ratio, LEAST)}


def paired(loads: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]) -> list[dict[str, Any]]:
    """Speeds of two servers that were measured in turns, as rows like those of `speeds`.

    Args:
        loads: load -> figure -> (before, after) of each pair, in order of time.
    """
    every = [(load, name, pairs) for load, found in loads.items() for name, pairs in found.items()]
    return [_paired(load, name, pairs, len(every)) for load, name, pairs in every]


def _paired(load: str, name: str, pairs: Sequence[tuple[float, float]], many: int) -> dict[str, Any]:
    sides = [[pair[side] for pair in pairs] for side in (0, 1)]
    means = [
        {"value": round(fmean(values), 6), "low": None, "high": None, "n": len(values)} for values in sides
    ]
    row: dict[str, Any] = {
        "load": load,
        "figure": name,
        "before": means[0],
        "after": means[1],
        "ratio": None,
        "change": "",
        "why": "",
    }
    if len(pairs) < LEAST_PAIRS:
        return {**row, "why": f"{len(pairs)} pairs are too few: {LEAST_PAIRS} are the least"}
    logs = [math.log(after / before) for before, after in pairs]
    estimate = steady_interval if len(pairs) >= MANY_PAIRS else mean_interval
    ratio = estimate(logs, ERROR / many).map(math.exp)
    return {**row, "ratio": _ends(ratio), "change": _change(name, ratio, LEAST)}


def _change(name: str, ratio: Interval, least: float) -> str:
    """`slower`, `faster`, or empty where that is not sure."""
    if ratio.low > 1 + least:
        return "slower" if name in TIMES else "faster"
    if ratio.high < 1 - least:
        return "faster" if name in TIMES else "slower"
    return ""


def alone(
    before: Mapping[str, float], after: Mapping[str, float], *, simulated: bool
) -> dict[str, Any] | None:
    """How long requests that had the server to themselves took, as a row like those of `speeds`.

    None where there are too few, and of a simulator, whose times are this machine's.
    """
    keys = sorted(key for key in before.keys() & after.keys() if before[key] > 0.005 and after[key] > 0.005)
    if len(keys) < PAIRS or simulated:
        return None
    one, other = [before[key] for key in keys], [after[key] for key in keys]
    ratio = paired_interval(other, one, ERROR, 1)
    change = "slower" if ratio.low > 1 + ALONE_LEAST else "faster" if ratio.high < 1 - ALONE_LEAST else ""
    ends = [
        {"value": round(sum(times), 3), "low": None, "high": None, "n": len(keys)} for times in (one, other)
    ]
    return {
        "load": ALONE,
        "figure": "seconds in all",
        "before": ends[0],
        "after": ends[1],
        "ratio": _ends(ratio),
        "change": change,
        "why": "",
    }


def sizes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Start, KV cache and memory side by side, as JSON rows: `figure`, `unit`, `before`, `after`."""
    rows = []
    starts = [part["boot"][-1][1] if part.get("boot") else None for part in (before, after)]
    if all(starts):  # nobody saw the start of a server that we were given
        rows.append({"figure": "start", "unit": "s", "before": starts[0], "after": starts[1]})
    for name, (what, unit, *_) in SIZES.items():
        was, now = before["figures"].get(name), after["figures"].get(name)
        if was is not None and now is not None:
            rows.append({"figure": what, "unit": unit, "before": was, "after": now})
    return rows


def changes(rows: Sequence[Mapping[str, Any]]) -> Iterator[Difference]:
    """Speeds that changed for sure, of rows of `speeds`, `paired` and `alone`."""
    changed = {(row["load"], row["figure"]) for row in rows if row["change"]}
    for row in rows:
        again = (row["load"], _SAME_AS.get(row["figure"], "")) in changed
        if row["change"] and not again:
            ratio = row["ratio"]
            means = f"{row['change']}: {ratio['value']:.3f} times ({ratio['low']:.3f} to {ratio['high']:.3f})"
            what = f"{row['figure']} of {row['load']}"
            yield Difference(Weight.SPEED, "speed", what, figure(row["before"]), figure(row["after"]), means)


def differences(
    rows: Sequence[Mapping[str, Any]], before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[Difference]:
    """Speeds that changed for sure, and sizes that changed by more than starts of one server do.

    Args:
        rows: of `speeds` and `alone`.
        before: a profile's part of an extract.
        after: and the one that is compared with it.
    """
    yield from changes(rows)
    yield from _start(before, after)
    for name, (what, unit, share, less_is_worse, means) in SIZES.items():
        was, now = before["figures"].get(name), after["figures"].get(name)
        if not was or not now or abs(now / was - 1) <= share:
            continue
        if unit == "GiB" and abs(now - was) < SMALLEST:
            continue
        worse = (now < was) == less_is_worse
        weight = Weight.BEHAVIOUR if worse else Weight.INFO
        said = f"{means} ({now / was - 1:+.1%})" if worse else f"{now / was - 1:+.1%}"
        yield Difference(weight, "figures", what, f"{was:,.6g} {unit}", f"{now:,.6g} {unit}", said)


def _start(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    ends = [part["boot"][-1][1] if part.get("boot") else 0.0 for part in (before, after)]
    was, now = ends
    if was and now and max(ends) > SLOW_START * min(ends) and abs(now - was) > SLOW_SECONDS:
        means = (
            f"the server takes {now / was:.1f} times as long to start" if now > was else "it starts sooner"
        )
        yield Difference(Weight.SPEED, "figures", "start", f"{was:.0f} s", f"{now:.0f} s", means)


def figure(ends: Mapping[str, Any]) -> str:
    """`42.1 (41.8 to 42.4)`."""
    text = f"{ends['value']:.4g}"
    return text if ends["low"] is None else f"{text} ({ends['low']:.4g} to {ends['high']:.4g})"


def _usable(one: Interval) -> bool:
    return 0 < one.low <= one.value <= one.high < math.inf


def _ratio(now: Interval, before: Interval, error: float) -> Interval:
    """How many times `before` it is now: measured apart, the noise of both counts, on the scale of shares.

    Of ends that lie unevenly the farther one counts on both sides: a rate and its time say the same.
    """
    wanted = NormalDist().inv_cdf(1 - error)
    spread = [
        max(math.log(one.high / one.value), math.log(one.value / one.low))
        * max(wanted / NormalDist().inv_cdf(1 - one.error), 1.0)
        for one in (now, before)
    ]
    value, margin = now.value / before.value, math.hypot(*spread)
    n = min(now.n, before.n)
    return Interval(value, value * math.exp(-margin), value * math.exp(margin), n, error)


def _ends(one: Interval) -> dict[str, Any]:
    ends = [round(end, 6) if math.isfinite(end) else None for end in (one.low, one.high)]
    return {"value": round(one.value, 6), "low": ends[0], "high": ends[1], "n": one.n}
