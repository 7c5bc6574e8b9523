"""What is counted is never counted back, from the first scrape of the run to the last."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_vllm import MUST, Recordings, check, listed, observe, only_if

from .scrapes import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_vllm import Metrics, Recording

STARTED = "process_start_time_seconds"
COUNTS = ("_total", "_count", "_sum", "_bucket")
#: By how much sums of fractions may be written otherwise.
ROUNDED = 1e-6


@check(
    "metrics.every.grows", MUST, spec="vllm:usage/metrics/", needs=["metrics"], exchanges=["metrics.", "*"]
)
def test_grows(vllm_recordings: Recordings) -> None:
    """No counter, sum or bucket falls from one scrape of a process to the next."""
    scrapes = [*_scrapes(vllm_recordings.of(""))]
    pairs = [(a, b) for a, b in pairwise(scrapes) if _one_process(a[1], b[1])]
    only_if(pairs, "the metrics of one process were not scraped twice")
    observe("scrapes compared", len(pairs) + 1)
    wrong = [f"{b[0]}: {fault}" for a, b in pairs for fault in _fallen(a[1], b[1])]

    assert not wrong, listed(wrong)


def _scrapes(recordings: list[Recording]) -> Iterator[tuple[str, Metrics]]:
    """Every scrape that can be put in order: one that was over before the next one began."""
    last = 0.0
    for one in sorted(recordings, key=lambda one: one.sent):
        if one.sent < last or one.status is None:
            continue
        if one.metrics_before is not None and one.metrics_after is not None:
            yield f"{one.key}, before", parsed(one.metrics_before)
            yield f"{one.key}, after", parsed(one.metrics_after)
            last = one.sent + one.seconds


def _one_process(before: Metrics, after: Metrics) -> bool:
    started = before.value(STARTED)
    return started is not None and started == after.value(STARTED)


def _fallen(before: Metrics, after: Metrics) -> Iterator[str]:
    """What fell; a sum may where its count grew: a request that failed has waited less than no time."""
    earlier, later = _counts(before), _counts(after)
    for (name, labels), value in later.items():
        was = earlier.get((name, labels), 0.0)
        count = (f"{name.removesuffix('_sum')}_count", labels)
        more = name.endswith("_sum") and later.get(count, 0.0) > earlier.get(count, 0.0)
        if value < was - ROUNDED * max(1.0, abs(was)) and not more:
            yield f"{name} is {value:g}, it was {was:g}"


def _counts(scrape: Metrics) -> Mapping[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for one in scrape.samples
        if one.name.startswith("vllm:") and one.name.endswith(COUNTS)
    }
