"""Whether the client, or the way to the server, was what limited a measurement. Never the server's fault.

A busy client reads late and sends late: streams that the server serves evenly come in lumps, and fewer are in
flight than were asked for. Numbers from such a run are undecided.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from pytest_vllm.measure.statistics import percentile
from pytest_vllm.wire.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.measure.samples import Sample

FAMILIES = {
    "ttft": "vllm:time_to_first_token_seconds",
    "tpot": "vllm:request_time_per_output_token_seconds",
}
LATENCIES = ("ttft", "itl", "e2e", "prefill-tok-s", "goodput")
#: Share of one core above which the client may hold the server's events up.
BUSY = 0.8
#: Share of the asked concurrency that must have been in flight; and where a simulator's counts are judged,
#: which tell how long each stream waited, so that fewer of them change the batch and nothing else.
DELIVERED, DELIVERED_COUNTED = 0.95, 0.8
#: How far client and server may differ in what they say of the same requests, and by how many seconds.
APART, LEAST_APART = 0.15, 0.005
#: Lag against the time between two deltas, at the 99th percentile.
LATE, LEAST_LATE = 0.2, 0.002


@dataclass(frozen=True)
class Doubt:
    """Why figures are uncertain.

    Args:
        reason: in words, with the numbers.
        figures: which ones; empty: all.
    """

    reason: str
    figures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Client:
    """What the client knows of itself; seconds of the wall.

    Args:
        cpu: seconds of processor time in the window.
        seconds: length of the window.
        held: how much of it some client process was held up, so that it does not count.
        starved: whether that leaves too little of it.
        lags: between arrival and reading of pieces.
        stamped: whether arrivals are the kernel's times.
        in_flight: requests in flight on average, while nothing was held up.
        asked: and how many were asked for; None in an open loop.
        stepped: whether the clock of the kernel's stamps was set meanwhile.
        events: pieces of responses that it read in the window.
        who: which process of several; empty when there is one alone.
    """

    cpu: float
    seconds: float
    lags: Sequence[float]
    stamped: bool
    in_flight: float = 0.0
    asked: int | None = None
    stepped: bool = False
    events: int = 0
    who: str = ""
    held: float = 0.0
    starved: bool = False


def doubts(client: Client, samples: Sequence[Sample], speed: float, *, counted: bool = False) -> list[Doubt]:
    """What the client's own state says against the figures.

    Args:
        client: its state.
        samples: the requests.
        speed: the server's seconds per second of ours.
        counted: whether the figures are the server's own counts, as on a simulator: a busy client does not
            touch them.
    """
    found = []
    if not counted and client.seconds > 0 and client.cpu / client.seconds > BUSY:
        share = client.cpu / client.seconds
        found.append(Doubt(f"the client was the limit: it took {share:.0%} of a processor core"))
    if not counted and client.starved:
        found.append(Doubt(f"the client was held up for {client.held:.2g} of {client.seconds:.3g} s"))
    least = DELIVERED_COUNTED if counted else DELIVERED
    if client.asked and client.in_flight < least * client.asked:
        found.append(
            Doubt(
                f"{client.in_flight:.1f} requests were in flight on average instead of {client.asked}",
                ("aggregate-tok-s", "requests-s", "goodput"),
            )
        )
    gaps = [gap / speed for one in samples[-200:] for gap in one.gaps[-200:]]
    late = percentile(client.lags, 0.99) if len(client.lags) else 0.0
    # with the kernel's times a late reading spoils nothing until the next event is there too
    usual = fmean(gaps) if gaps else 0.0
    if gaps and not client.stamped and late > max(usual * LATE, LEAST_LATE):
        told = f"the client read {late * 1e3:.1f} ms late (p99) at {usual * 1e3:.1f} ms between events"
        found.append(Doubt(told, LATENCIES))
    elif gaps and late > max(usual, LEAST_LATE):
        told = f"events came together: the client read {late * 1e3:.1f} ms late (p99)"
        found.append(Doubt(f"{told} at {usual * 1e3:.1f} ms between them", ("itl",)))
    if client.stepped:
        found.append(Doubt("the clock was set during the measurement", LATENCIES))
    return [replace(one, reason=f"{client.who}: {one.reason}") for one in found] if client.who else found


def against_server(before: str, after: str, samples: Sequence[Sample], speed: float) -> list[Doubt]:
    """What the server's own histograms and counters say otherwise about the same requests.

    Args:
        before: `/metrics` before the first of the samples was sent.
        after: and once all of them had ended.
        samples: every request between the two, canaries and warm-up included.
        speed: the server's seconds per second of ours.
    """
    if not before or not after:
        return []
    start, end = Metrics(before), Metrics(after)
    if start.fault or end.fault:
        return []
    found = []
    good = [one for one in samples if one.good]
    counted = end.delta(start, "vllm:generation_tokens_total")
    told = sum(one.tokens for one in good)
    whole = all(one.good for one in samples)
    if counted is not None and told and whole and abs(counted - told) > max(0.01 * told, 1):
        text = f"the server counted {counted:.0f} generated tokens, the answers tell {told}"
        found.append(Doubt(f"{text}: who else uses it?"))
    for name in FAMILIES:
        pair = means(name, start, end, good)
        if pair is None:
            continue
        mine, theirs = pair
        if abs(mine - theirs) > max(APART * theirs, LEAST_APART * speed):
            figures = LATENCIES if name == "ttft" else ("decode-tok-s", "tpot")
            found.append(
                Doubt(
                    f"mean {name} is {mine:.4g} s here and {theirs:.4g} s in the server's histogram: "
                    "the client or something between them holds answers up",
                    figures,
                )
            )
    return found


def means(name: str, start: Metrics, end: Metrics, good: Sequence[Sample]) -> tuple[float, float] | None:
    """The mean of a latency here and in the server's histogram; None where those are other requests."""
    count, total = end.delta(start, f"{FAMILIES[name]}_count"), end.delta(start, f"{FAMILIES[name]}_sum")
    if name == "ttft":
        ours = [one.deltas[0] - one.sent for one in good if len(one.deltas)]
    else:
        ours = [one.tpot for one in good if one.tpot is not None]
    if not count or total is None or not ours or abs(count - len(ours)) > 0.02 * count + 1:
        return None
    return fmean(ours), total / count
