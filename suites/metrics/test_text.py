"""The text of `/metrics`: what a Prometheus server has to be able to read."""

from collections import Counter, defaultdict
from itertools import pairwise
from math import isfinite, isnan

from pytest_vllm import MUST, SHOULD, Metrics, Recording, Recordings, Server, check, listed, need, unexpected

from .scrapes import parsed

FORMAT = "prometheus:text-based-format"
NEEDS = ("metrics",)


@check("metrics.answered", MUST, spec=FORMAT, needs=NEEDS, exchanges=("metrics.",))
def test_answered(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """The metrics and the traffic that moves them are answered."""
    generates = vllm_server.can("completions")
    wrong = unexpected(r for r in vllm_recordings.of("metrics.") if generates or r.request.method == "GET")

    assert not wrong, "; ".join(wrong)


@check("metrics.text.readable", MUST, spec=FORMAT, needs=NEEDS)
def test_readable(metrics_scrape: Recording) -> None:
    """`/metrics` is Prometheus text."""
    need(metrics_scrape.status == 200, f"answered with {metrics_scrape.status}")
    fault = Metrics(metrics_scrape.text).fault

    assert not fault, fault


@check("metrics.text.content-type", SHOULD, spec=FORMAT, needs=NEEDS)
def test_content_type(metrics_scrape: Recording) -> None:
    """`/metrics` calls itself Prometheus text, or newer Prometheus refuses it."""
    need(metrics_scrape.status == 200, f"answered with {metrics_scrape.status}")
    label = metrics_scrape.header("content-type")

    assert label.startswith(("text/plain", "application/openmetrics-text")), f"content type is {label!r}"


@check("metrics.text.finite", MUST, spec="fault:vllm-project/vllm/issues/10234", needs=NEEDS)
def test_finite(metrics_scrape: Recording) -> None:
    """No value of vLLM's is NaN or infinite."""
    samples = [s for s in parsed(metrics_scrape.text).samples if s.name.startswith("vllm:")]
    need(samples, "no value of vLLM's is there")
    wrong = [
        f"{s.name}{dict(s.labels)} is {s.value}" for s in samples if isnan(s.value) or not isfinite(s.value)
    ]

    assert not wrong, listed(wrong)


@check("metrics.text.not-negative", MUST, spec=FORMAT, needs=NEEDS)
def test_not_negative(metrics_scrape: Recording) -> None:
    """No gauge, counter or count of vLLM's is negative."""
    named = [s for s in parsed(metrics_scrape.text).samples if s.name.startswith("vllm:")]
    # metrics.latency.failed-request judges sums; before 0.9.2 a hit rate of -1 is one that nobody counts
    samples = [s for s in named if not s.name.endswith(("_sum", "_cache_hit_rate"))]
    need(samples, "no value of vLLM's is there")
    wrong = [f"{s.name}{dict(s.labels)} is {s.value}" for s in samples if s.value < 0]

    assert not wrong, listed(wrong)


@check("metrics.text.unique", MUST, spec=FORMAT, needs=NEEDS)
def test_unique(metrics_scrape: Recording) -> None:
    """No value is given twice under the same labels: Prometheus drops the scrape."""
    samples = parsed(metrics_scrape.text).samples
    counts = Counter((s.name, tuple(sorted(s.labels.items()))) for s in samples)
    twice = [f"{name}{dict(labels)}" for (name, labels), count in counts.items() if count > 1]

    assert not twice, listed(twice)


def buckets(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[float, float]]]:
    """(upper bound, count) of vLLM's histograms, by name and labels."""
    found = defaultdict(list)
    for sample in metrics.samples:
        if sample.name.startswith("vllm:") and sample.name.endswith("_bucket"):
            labels = {name: value for name, value in sample.labels.items() if name != "le"}
            name = sample.name.removesuffix("_bucket")
            found[name, tuple(sorted(labels.items()))].append((float(sample.labels["le"]), sample.value))
    return {key: sorted(pairs) for key, pairs in found.items()}


@check("metrics.text.buckets-grow", MUST, spec="prometheus:histograms-and-summaries", needs=NEEDS)
def test_buckets_grow(metrics_scrape: Recording) -> None:
    """The buckets of a histogram never shrink towards greater bounds."""
    found = buckets(parsed(metrics_scrape.text))
    need(found, "vLLM gives no histogram")
    wrong = [
        f"{name}: {low[1]:.0f} up to {low[0]}, {high[1]:.0f} up to {high[0]}"
        for (name, _), pairs in found.items()
        for low, high in pairwise(pairs)
        if high[1] < low[1]
    ]

    assert not wrong, listed(wrong)


@check("metrics.text.buckets-complete", MUST, spec="prometheus:histograms-and-summaries", needs=NEEDS)
def test_buckets_complete(metrics_scrape: Recording) -> None:
    """The last bucket of a histogram is `+Inf` and holds its whole count."""
    metrics = parsed(metrics_scrape.text)
    found = buckets(metrics)
    need(found, "vLLM gives no histogram")
    counts = {key: metrics.value(f"{key[0]}_count", **dict(key[1])) for key in found}
    wrong = [
        f"{name}: {pairs[-1][1]} up to {pairs[-1][0]}, count {counts[name, labels]}"
        for (name, labels), pairs in found.items()
        if pairs[-1] != (float("inf"), counts[name, labels])
    ]

    assert not wrong, listed(wrong)
