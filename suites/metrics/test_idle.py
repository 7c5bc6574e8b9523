"""What the gauges say of an idle server, of a busy one, and of its cache."""

from collections import Counter

from pytest_vllm import (
    MUST,
    SHOULD,
    Metrics,
    Recording,
    Recordings,
    Server,
    check,
    listed,
    need,
    observe,
    only_if,
)

from .scrapes import parsed

CONTRACT = "vllm:usage/metrics/"
NEEDS = ("metrics", "completions")
CACHE = "vllm:cache_config_info"
USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
#: A stream, and the scrapes while it goes on.
BUSY = ("metrics.busy", "metrics.busy-first", "metrics.busy-scrape[")
#: Blocks that a request may hold for each that its tokens fill: one for each group of layers, and some ahead.
GROUPS = 32
#: Tokens that may have been computed and not yet come.
AHEAD = 64


@check("metrics.idle.requests", MUST, spec=CONTRACT, needs=NEEDS)
def test_requests(
    metrics_completion: Recording, metrics_stream: Recording, metrics_refused: Recording
) -> None:
    """No request runs or waits once all were answered."""
    scrapes = {r.key: parsed(r.metrics_after) for r in (metrics_completion, metrics_stream, metrics_refused)}
    names = ("vllm:num_requests_running", "vllm:num_requests_waiting")
    values = [(key, name, scrape.value(name)) for key, scrape in scrapes.items() for name in names]
    need(any(value is not None for _, _, value in values), "the gauges are not there")
    wrong = [f"after {key}: {name} is {value:.0f}" for key, name, value in values if value]

    assert not wrong, listed(wrong)


@check("metrics.idle.cache", MUST, spec="fault:vllm-project/vllm/issues/50425", needs=NEEDS)
def test_cache(metrics_completion: Recording, metrics_stream: Recording) -> None:
    """An idle server holds no cache for requests."""
    scrapes = {r.key: parsed(r.metrics_after) for r in (metrics_completion, metrics_stream)}
    values = [(key, name, scrape.value(name)) for key, scrape in scrapes.items() for name in USAGE]
    need(any(value is not None for _, _, value in values), "the cache's usage is not there")
    wrong = [f"after {key}: {name} is {value:.4f}" for key, name, value in values if value and value > 0.005]

    assert not wrong, listed(wrong)


@check(
    "metrics.gauges.busy",
    MUST,
    spec=CONTRACT,
    needs=(*NEEDS, "stream"),
    exchanges=BUSY,
)
def test_busy(metrics_busy: Recording, vllm_recordings: Recordings) -> None:
    """While an answer is streamed a request runs, and the cache holds something."""
    scrapes = [parsed(one.text) for one in _during(metrics_busy, vllm_recordings)]
    usage = [name for name in USAGE if any(scrape.value(name) is not None for scrape in scrapes)]
    need(usage, "the cache's usage is not there")
    running, used = (_most(scrapes, name) for name in ("vllm:num_requests_running", usage[0]))
    observe("running, and the cache's usage, at most", f"{running:.0f}, {used:.4f}")
    told = [sample.labels.get("num_gpu_blocks", "") for one in scrapes for sample in one.named(CACHE)]
    blocks = any(count.isdigit() and int(count) > 1 for count in told)

    assert running, "no request runs while one is answered"
    assert used or not blocks, "the cache holds nothing while a request is answered"


@check(
    "metrics.gauges.part",
    MUST,
    spec=CONTRACT,
    needs=(*NEEDS, "stream"),
    exchanges=BUSY,
)
def test_part(metrics_busy: Recording, metrics_completion: Recording, vllm_recordings: Recordings) -> None:
    """The cache's usage is about the part of it that the tokens of one request fill."""
    idle = [value for name in USAGE if (value := parsed(metrics_completion.metrics_after).value(name))]
    only_if(not idle, "something holds a part of the cache while no request runs")
    told, wrong = 0, []
    for one in _during(metrics_busy, vllm_recordings):
        scrape = parsed(one.text)
        sizes = [
            (s.labels.get("num_gpu_blocks", ""), s.labels.get("block_size", "")) for s in scrape.named(CACHE)
        ]
        known = [(int(count), int(size)) for count, size in sizes if count.isdigit() and size.isdigit()]
        used = max((_most([scrape], name) for name in USAGE), default=0.0)
        if _most([scrape], "vllm:num_requests_running") > 1 or not known or not used:
            continue
        come = sum(metrics_busy.sent + at <= one.sent + one.seconds for at, _ in metrics_busy.chunks)
        tokens = len(metrics_busy.request.json["prompt"]) + come + AHEAD
        blocks, size = min(known)
        told += 1
        if used * blocks > GROUPS * (tokens // max(size, 1) + 2):
            wrong.append(f"{used:.4g} of {blocks} blocks of {size}, for a request of {tokens} tokens at most")
    only_if(told, "no scrape tells how much of how many blocks one request uses")

    assert not wrong, listed(wrong)


def _during(busy: Recording, recordings: Recordings) -> list[Recording]:
    """The scrapes that were answered while a stream went on."""
    need(busy.status == 200, f"no stream: {busy.status or busy.error}")
    times = [at for at, _ in busy.chunks]
    during = [
        one
        for one in recordings.of("metrics.busy-scrape[")
        if one.status == 200
        and times
        and busy.sent + times[0] <= one.sent
        and one.sent + one.seconds <= busy.sent + times[-1]
    ]
    only_if(during, "no scrape was answered while the stream went on")
    return during


def _most(scrapes: list[Metrics], name: str) -> float:
    return max((sample.value for scrape in scrapes for sample in scrape.named(name)), default=0.0)


@check("metrics.gauges.one-source", MUST, spec="fault:vllm-project/vllm/pull/28792", needs=("metrics",))
def test_one_source(metrics_scrape: Recording) -> None:
    """Each engine has one value of the gauges that routers read."""
    scrape = parsed(metrics_scrape.text)
    names = ("vllm:num_requests_running", "vllm:num_requests_waiting", *USAGE)
    samples = [sample for name in names for sample in scrape.named(name)]
    need(samples, "the gauges are not there")
    owners = Counter((s.name, s.labels.get("engine"), s.labels.get("model_name")) for s in samples)
    wrong = [
        f"{name} of engine {engine}: {count} values"
        for (name, engine, _), count in owners.items()
        if count > 1
    ]

    assert not wrong, listed(wrong)


@check("metrics.cache.fraction", MUST, spec=CONTRACT, needs=("metrics",))
def test_fraction(metrics_scrape: Recording) -> None:
    """The cache's usage is a fraction of one, not a percentage."""
    scrape = parsed(metrics_scrape.text)
    values = {name: [s.value for s in scrape.named(name)] for name in USAGE if scrape.named(name)}
    need(values, "the cache's usage is not there")
    wrong = [f"{name}: {found}" for name, found in values.items() if not all(0 <= one <= 1 for one in found)]

    assert not wrong, listed(wrong)


@check("metrics.cache.size-told", MUST, spec=CONTRACT, needs=("metrics",))
def test_size_told(metrics_scrape: Recording) -> None:
    """`cache_config_info` gives the size of a cache block and the number of blocks."""
    infos = parsed(metrics_scrape.text).named("vllm:cache_config_info")
    need(infos, "cache_config_info is not there")
    told = [(info.labels.get("block_size", ""), info.labels.get("num_gpu_blocks", "")) for info in infos]
    wrong = [f"block size {size!r}, blocks {count!r}" for size, count in told if not (size + count).isdigit()]

    assert not wrong, listed(wrong)


@check("metrics.cache.size-adds-up", SHOULD, spec=CONTRACT, needs=("metrics",))
def test_size_adds_up(vllm_server: Server, metrics_scrape: Recording) -> None:
    """The cache's size in tokens is the number of its blocks times their size."""
    only_if(vllm_server.at_least("0.24.0"), "before 0.24 cache_config_info gives no size in tokens")
    infos = [info.labels for info in parsed(metrics_scrape.text).named("vllm:cache_config_info")]
    names = ("num_gpu_blocks", "block_size", "kv_cache_size_tokens")
    told = [[labels[name] for name in names] for labels in infos if all(name in labels for name in names)]
    need(told and all(value.isdigit() for row in told for value in row), f"cache_config_info tells {told}")
    sizes = [[int(value) for value in row] for row in told]
    observe("KV cache", f"{sum(tokens for _, _, tokens in sizes)} tokens")
    wrong = [
        f"{blocks} x {size} is not {tokens}" for blocks, size, tokens in sizes if blocks * size != tokens
    ]

    assert not wrong, listed(wrong)
