"""From samples to figures: which values stand behind each, and how they are condensed.

Speeds of decoding rest on the seconds per token between neighbouring deltas, speeds over all streams on the
tokens of equal parts of the window, latencies on the median over requests.

A simulator's clock is faster than the wall's, and what it takes to handle a request is not what it
simulates: its own counters are judged instead, scrape by scrape, so that a busy machine does not make it look
slow.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from pytest_vllm.measure.held import left, length, touches
from pytest_vllm.measure.statistics import LEAST, Interval, mean_interval, median_interval, steady_interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm.measure.measured import Measured
    from pytest_vllm.measure.samples import Sample
    from pytest_vllm.measure.workload import Slo

RATES = ("decode-tok-s", "aggregate-tok-s", "prefill-tok-s", "requests-s", "goodput")
TIMES = ("ttft", "ttft-cached", "tpot", "e2e")
#: Values that an interval is worked out from, at most; more are averaged in groups of neighbours.
MOST = 240
#: Parts of the window for rates over all streams, at most; deltas of a stream in each that make it smooth;
#: and those that do where a slow server has no more: its interval is the wider for it.
PARTS, DELTAS, FEWEST = 60, 5, 2
GENERATED, PROMPT = "vllm:generation_tokens_total", "vllm:prompt_tokens_total"
FIRST = "vllm:time_to_first_token_seconds"
#: Between tokens: its name now, and before 0.11.
GAPS = ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")


@dataclass(frozen=True)
class Series:
    """Values behind a figure.

    Args:
        values: in order of time.
        inverse: whether the figure is one over their mean or median.
        middle: whether it is the median.
        steady: whether what stands far out is cut off.
        n: single observations that the values condense.
    """

    values: Sequence[float]
    inverse: bool = False
    middle: bool = False
    steady: bool = False
    n: int = 0

    def interval(self, error: float) -> Interval:
        """The figure's interval."""
        estimate = median_interval if self.middle else steady_interval if self.steady else mean_interval
        found = estimate(self.values, error)
        found = Interval(found.value, found.low, found.high, self.n or found.n, error, found.independent)
        return found.map(_over) if self.inverse else found


def series(measured: Measured, name: str, kind: str = "") -> Series:
    """The values behind a figure. Raises KeyError for a figure that does not exist."""
    if measured.simulated and not kind and (counted := _counted(measured, name)):
        return counted
    if name in ("decode-tok-s", "tpot"):
        times = _token_times(measured, kind)
        return Series(condensed(times), inverse=name == "decode-tok-s", n=len(times))
    if name == "aggregate-tok-s":
        stamps = [(at, one.per_delta) for one in measured.samples if one.good for at in one.deltas]
        return Series(_parts(measured, stamps))
    if name in ("requests-s", "goodput"):
        slo = measured.workload.slo if name == "goodput" else None
        ends = [(one.end, float(meets(one, slo))) for one in measured.samples if one.good]
        return Series(_parts(measured, ends))
    if name == "prefill-tok-s":
        times = [
            one.ttft / (one.prompt_tokens - one.cached)
            for one in measured.scored(kind)
            if one.ttft is not None and one.prompt_tokens > one.cached and not _held(measured, one, "ttft")
        ]
        return Series(times, inverse=True, middle=True)
    if name in TIMES:
        return Series(singles(measured, name.removesuffix("-cached"), kind), middle=True)
    raise KeyError(f"no figure {name!r}: there are {', '.join((*RATES, *TIMES))}")


def singles(measured: Measured, name: str, kind: str = "") -> list[float]:
    """Single values of the window: one per request, or one per gap for `itl`; none that was held up."""
    if name == "itl":
        pairs = (pair for one in measured.scored(kind) for pair in pairwise(one.deltas))
        return [after - before for before, after in pairs if not touches(before, after, measured.held)]
    found = (getattr(one, name) for one in measured.scored(kind) if not _held(measured, one, name))
    return [value for value in found if value is not None]


def waits(measured: Measured, kind: str = "") -> list[tuple[float, float]]:
    """How long requests of the window waited for their first token: at least, and at most.

    Between the two lies the time in which the client was held up: whether the server went on in it or stood
    still too, as on the same machine, is not known.
    """
    found = []
    for one in measured.scored(kind):
        if one.ttft is not None:
            free = length(left((one.intended, one.deltas[0]), measured.held))
            found.append((free, one.ttft))
    return found


def _held(measured: Measured, sample: Sample, name: str) -> bool:
    """Whether the client was held up while a value of a request came about."""
    early = name == "ttft" and len(sample.deltas)
    return touches(sample.intended, sample.deltas[0] if early else sample.end, measured.held)


def meets(sample: Sample, slo: Slo | None) -> bool:
    """Whether a request was as good as it had to be."""
    if not sample.good:
        return False
    pairs = ((sample.ttft, slo.ttft), (sample.tpot, slo.tpot), (sample.e2e, slo.e2e)) if slo else ()
    return all(bound is None or (value is not None and value <= bound) for value, bound in pairs)


def condensed(values: Sequence[float], most: int = MOST) -> Sequence[float]:
    """At most so many means of equally many neighbours; a rest that fills no group is left out."""
    size = -(-len(values) // most)
    if size <= 1:
        return values
    return [fmean(values[at : at + size]) for at in range(0, len(values) - size + 1, size)]


def _token_times(measured: Measured, kind: str) -> list[float]:
    """Seconds per token between neighbouring deltas in the window, in order of time."""
    begin, end = measured.window
    found = []
    for one in measured.samples:
        if not one.good or kind not in ("", one.kind):
            continue
        # the first delta may hold another number of tokens than those after it
        per_delta = max(one.tokens - 1, 1) / max(len(one.deltas) - 1, 1)
        for before, after in zip(one.deltas, one.deltas[1:], strict=False):
            if before >= begin and after <= end:
                found.append((after, (after - before) / per_delta))
    found.sort()
    return [seconds for _, seconds in found]


def _parts(measured: Measured, stamps: Sequence[tuple[float, float]]) -> list[float]:
    """What falls into equal parts of the window, per second; what was held up is cut out of it."""
    pieces = left(measured.window, measured.held)
    inside, passed = [], 0.0
    for begin, end in pieces:
        inside += [(at - begin + passed, count) for at, count in stamps if begin <= at < end]
        passed += end - begin
    each = len(inside) / max(1, measured.workload.streams)
    parts = min(PARTS, max(int(each / DELTAS), min(LEAST, int(each / FEWEST))))
    if parts < 1:
        return []
    width = passed / parts
    sums = [0.0] * parts
    for at, count in inside:
        sums[min(parts - 1, int(at / width))] += count
    return [total / width for total in sums]


def _counted(measured: Measured, name: str) -> Series | None:
    """The same by the server's own counters between two scrapes; None for figures that they do not tell.

    A stream always waits for its first token or for its next one, so the time that passed for the server is
    what its streams waited, shared among them.
    """
    begin, end = measured.window
    points = [one.values for one in measured.timeline if begin <= one.at <= end]
    streams = 1 if measured.workload.open_loop else measured.workload.streams
    values = []
    last = points[0] if points else {}
    for point in points[1:]:
        tokens, firsts = (_grown(last, point, family) for family in (GENERATED, f"{FIRST}_count"))
        waited, between = (_grown(last, point, f"{family}_sum") for family in (FIRST, _gap_family(point)))
        value = {
            "tpot": (between, tokens - firsts),
            "decode-tok-s": (between, tokens - firsts),
            "ttft": (waited, firsts),
            "ttft-cached": (waited, firsts),
            "prefill-tok-s": (waited, _grown(last, point, PROMPT) * (firsts > 0)),
            "aggregate-tok-s": (tokens * streams, waited + between),
        }.get(name)
        if value is None:
            return None
        if value[0] > 0 and value[1] > 0:
            values.append(value[0] / value[1])
            last = point
    # where the machine stood still for long, the simulator's clock went on
    return Series(values, inverse=name in ("decode-tok-s", "prefill-tok-s"), steady=True)


def _grown(before: Mapping[str, float], after: Mapping[str, float], name: str) -> float:
    return after.get(name, 0.0) - before.get(name, 0.0)


def _gap_family(point: Mapping[str, float]) -> str:
    return GAPS[0] if f"{GAPS[0]}_sum" in point else GAPS[1]


def _over(value: float) -> float:
    return 1 / value if value > 0 else float("inf")
