"""What is counted is never counted back, from the first scrape of the run to the last."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_vllm import MUST, Recordings, check, listed, observe, only_if

from .scrapes import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_vllm import Metrics, Recording

STARTED = "process_start_time_seconds"
HTTP = "http_requests_total"
#: How requests are answered whose counting no layer in front takes away.
COUNTED = (200, 400, 404)
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


@check(
    "metrics.every.answered", MUST, spec="vllm:usage/metrics/", needs=["metrics"], exchanges=["metrics.", "*"]
)
def test_answered(vllm_recordings: Recordings) -> None:
    """What was answered is counted: by route, and by whether it was served or refused."""
    found = vllm_recordings.of("")
    scrapes = sorted((one.sent, one.metrics_before) for one in found if one.metrics_before)
    starts = {parsed(text).value(STARTED) for _, text in scrapes}
    only_if(len(starts) == 1 and None not in starts, "the metrics are not those of one process")
    at, last = scrapes[-1][0], parsed(scrapes[-1][1])
    rows = [one for one in last.named(HTTP) if {"handler", "status", "method"} <= one.labels.keys()]
    only_if(rows, "HTTP requests are not counted here")
    known, started = {one.labels["handler"] for one in rows}, last.value(STARTED) or 0.0
    answered = Counter(
        (one.request.path, f"{one.status // 100}xx")
        for one in found
        if one.status in COUNTED and one.request.method == "POST" and one.request.path in known
        if not one.aborted and not one.error and started < one.sent < at - one.seconds - 1
        if one.header("server") == "uvicorn"  # else something in front may have answered
    )
    counts = Counter[tuple[str, str]]()
    for one in rows:
        counts[one.labels["handler"], f"{one.labels['status'][:1]}xx"] += int(one.value)
    observe("answers that have to be counted", answered.total())
    wrong = [
        f"{path}, {status}: {counts[path, status]}, answered were {count}"
        for (path, status), count in answered.items()
        if counts[path, status] < count
    ]

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
