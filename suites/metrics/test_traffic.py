"""What is counted is what was served. Every exchange here ran alone, between two scrapes."""

from pytest_vllm import MUST, SHOULD, Recording, Server, check, listed, need, only_if

from .exchanges import TOKENS
from .scrapes import Traffic, usage_of

CONTRACT = "vllm:usage/metrics/"
NEEDS = ("metrics", "completions")
FINISHED = "vllm:request_success_total"
COUNTS_HITS = "0.8.0"


def reasons(traffic: Traffic) -> dict[str, float]:
    """Finished requests by reason, those that moved."""
    names = {sample.labels.get("finished_reason", "") for sample in traffic.after.named(FINISHED)}
    moved = {name: traffic.grown(FINISHED, finished_reason=name) for name in sorted(names)}
    return {name: count for name, count in moved.items() if count}


@check("metrics.requests.length", MUST, spec=CONTRACT, needs=NEEDS)
def test_length(metrics_completion: Recording, metrics_stream: Recording) -> None:
    """A request that ends at its token limit is counted once, as `length`."""
    need(metrics_completion.status == 200 == metrics_stream.status, "a request was not answered with 200")
    moved = {r.key: reasons(Traffic(r)) for r in (metrics_completion, metrics_stream)}
    wrong = [f"{key}: {counts}" for key, counts in moved.items() if counts != {"length": 1}]

    assert not wrong, f"counted by reason: {listed(wrong)}"


@check("metrics.requests.stop", MUST, spec=CONTRACT, needs=NEEDS)
def test_stop(metrics_stopped: Recording) -> None:
    """A request that meets its stop token is counted once, as `stop`."""
    reason = metrics_stopped.ok["choices"][0]["finish_reason"]
    need(reason == "stop", f"it finished with {reason!r}")
    moved = reasons(Traffic(metrics_stopped))

    assert moved == {"stop": 1}, f"counted by reason: {moved}"


@check("metrics.requests.refused", MUST, spec=CONTRACT, needs=NEEDS)
def test_refused(metrics_refused: Recording) -> None:
    """A request that is refused is not counted among the finished ones."""
    need(metrics_refused.status == 400, f"answered with {metrics_refused.status}")
    moved = reasons(Traffic(metrics_refused))

    assert not moved, f"counted by reason: {moved}"


@check("metrics.requests.http-status", SHOULD, spec=CONTRACT, needs=NEEDS)
def test_http_status(metrics_refused: Recording) -> None:
    """A refused request is counted under its real HTTP status."""
    need(metrics_refused.status == 400, f"answered with {metrics_refused.status}")
    traffic = Traffic(metrics_refused)
    need(traffic.has("http_requests_total"), "HTTP requests are not counted here")
    counted = {s: traffic.grown("http_requests_total", status=s) for s in ("4xx", "400", "5xx", "500")}

    assert counted["4xx"] + counted["400"] == 1, f"counted by status: {counted}"


@check("metrics.tokens.prompt", MUST, spec=CONTRACT, needs=NEEDS)
def test_prompt_tokens(metrics_completion: Recording, metrics_stream: Recording) -> None:
    """`prompt_tokens_total` grows by the prompt tokens of the answer's usage."""
    both = [(r, usage_of(r)["prompt_tokens"]) for r in (metrics_completion, metrics_stream)]
    grown = [(r.key, Traffic(r).grown("vllm:prompt_tokens_total"), used) for r, used in both]
    wrong = [f"{key}: counted {count:.0f}, usage {used}" for key, count, used in grown if count != used]

    assert not wrong, listed(wrong)


@check("metrics.tokens.generation", MUST, spec=CONTRACT, needs=NEEDS)
def test_generation_tokens(metrics_completion: Recording, metrics_stream: Recording) -> None:
    """`generation_tokens_total` grows by the tokens that were generated."""
    need(metrics_completion.status == 200 == metrics_stream.status, "a request was not answered with 200")
    both = (metrics_completion, metrics_stream)
    grown = [(r.key, Traffic(r).grown("vllm:generation_tokens_total")) for r in both]
    wrong = [f"{key}: counted {count:.0f}, generated {TOKENS}" for key, count in grown if count != TOKENS]

    assert not wrong, listed(wrong)


@check("metrics.tokens.per-request", MUST, spec="fault:vllm-project/vllm/issues/41368", needs=NEEDS)
def test_per_request(metrics_completion: Recording) -> None:
    """The histograms of a request's size hold what the request asked for and got."""
    usage, traffic = usage_of(metrics_completion), Traffic(metrics_completion)
    expected = {
        "vllm:request_prompt_tokens_sum": usage["prompt_tokens"],
        "vllm:request_generation_tokens_sum": usage["completion_tokens"],
        "vllm:request_params_max_tokens_sum": TOKENS,
        "vllm:request_params_n_sum": 1,
    }
    known = {name: value for name, value in expected.items() if traffic.has(name)}
    need(known, "none of the histograms is there")
    wrong = [
        f"{n}: {traffic.grown(n):.0f}, not {value}" for n, value in known.items() if traffic.grown(n) != value
    ]

    assert not wrong, listed(wrong)


@check("metrics.latency.counted", MUST, spec=CONTRACT, needs=NEEDS)
def test_counted(metrics_completion: Recording, metrics_stream: Recording) -> None:
    """Each request is counted once in every histogram of its latencies."""
    need(metrics_completion.status == 200 == metrics_stream.status, "a request was not answered with 200")
    names = (
        "time_to_first_token_seconds",
        "e2e_request_latency_seconds",
        "request_queue_time_seconds",
        "request_prefill_time_seconds",
        "request_decode_time_seconds",
        "request_inference_time_seconds",
    )
    moved = [(r.key, Traffic(r)) for r in (metrics_completion, metrics_stream)]
    counts = [
        (key, n, t.grown(f"vllm:{n}_count")) for key, t in moved for n in names if t.has(f"vllm:{n}_count")
    ]
    need(counts, "none of the histograms is there")
    wrong = [f"{key}: {name} counts {count:.0f}" for key, name, count in counts if count != 1]

    assert not wrong, listed(wrong)


@check("metrics.latency.between-tokens", MUST, spec="fault:vllm-project/vllm/issues/32661", needs=NEEDS)
def test_between_tokens(metrics_completion: Recording) -> None:
    """The times between tokens are counted, at most once for each later token."""
    traffic, tokens = Traffic(metrics_completion), usage_of(metrics_completion)["completion_tokens"]
    names = ("vllm:inter_token_latency_seconds_count", "vllm:time_per_output_token_seconds_count")
    known = [name for name in names if traffic.has(name)]
    need(known and tokens > 1, "there is no such histogram, or only one token")
    counts = {name: traffic.grown(name) for name in known}
    wrong = [f"{name}: {count:.0f}" for name, count in counts.items() if not 1 <= count <= tokens - 1]

    assert not wrong, f"{listed(wrong)} for {tokens} tokens"


@check("metrics.latency.order", MUST, spec=CONTRACT, needs=NEEDS)
def test_order(metrics_completion: Recording) -> None:
    """The first token comes after the queue and before the end."""
    traffic = Traffic(metrics_completion)
    names = ("request_queue_time_seconds", "time_to_first_token_seconds", "e2e_request_latency_seconds")
    need(all(traffic.has(f"vllm:{name}_sum") for name in names), "one of the histograms is not there")
    queue, first, whole = (traffic.grown(f"vllm:{name}_sum") for name in names)
    slack = 0.05

    assert 0 < first <= whole + slack, f"first token after {first:.3f} s, end after {whole:.3f} s"
    assert queue <= first + slack, f"queue {queue:.3f} s, first token after {first:.3f} s"


@check("metrics.latency.failed-request", SHOULD, spec="fault:vllm-project/vllm/issues/49135", needs=NEEDS)
def test_failed_request(metrics_failed: Recording) -> None:
    """A request that fails or is refused moves no latency more than it lasted."""
    metrics_failed.answered()
    traffic, longest = Traffic(metrics_failed), metrics_failed.seconds + 0.1
    names = ("queue", "prefill", "decode", "inference")
    moved = {name: traffic.grown(f"vllm:request_{name}_time_seconds_sum") for name in names}
    wrong = [
        f"{name} time by {seconds:.0f} s" for name, seconds in moved.items() if not 0 <= seconds <= longest
    ]

    assert not wrong, f"moved by a request of {metrics_failed.seconds:.1f} s: {listed(wrong)}"


@check("metrics.latency.like-client", SHOULD, spec=CONTRACT, needs=NEEDS)
def test_like_client(metrics_completion: Recording) -> None:
    """The server's time for a request is not more than the client's."""
    name = "vllm:e2e_request_latency_seconds_sum"
    traffic = Traffic(metrics_completion)
    need(traffic.has(name), "there is no such histogram")
    served, seen = traffic.grown(name), metrics_completion.seconds

    assert served <= seen + 0.1, f"the server counts {served:.3f} s, the client {seen:.3f} s"


@check("metrics.counters.never-fall", MUST, spec="prometheus:counters", needs=NEEDS)
def test_never_fall(metrics_completion: Recording, metrics_stream: Recording) -> None:
    """No counter of vLLM's falls between two scrapes."""
    moved = [Traffic(r) for r in (metrics_completion, metrics_stream)]
    names = [(t, f"{n}_total") for t in moved for n, kind in t.after.types.items() if kind == "counter"]
    wrong = [
        f"{t.key}: {n} by {-t.grown(n):.0f}" for t, n in names if n.startswith("vllm:") and t.grown(n) < 0
    ]
    need(names, "vLLM gives no counter")

    assert not wrong, f"fell: {listed(wrong)}"


@check("metrics.prefix-cache.queries", MUST, spec=CONTRACT, needs=("metrics", "completions", "prefix-cache"))
def test_queries(vllm_server: Server, metrics_completion: Recording) -> None:
    """Every prompt token is looked up in the prefix cache, once."""
    only_if(vllm_server.at_least(COUNTS_HITS), "before 0.8.0 /metrics gives a hit rate and no counts")
    traffic, tokens = Traffic(metrics_completion), usage_of(metrics_completion)["prompt_tokens"]
    names = ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total")
    known = [name for name in names if traffic.has(name)]
    need(known, "prefix-cache queries are not counted here")
    count = traffic.grown(known[0])

    assert count == tokens, f"{count:.0f} lookups for {tokens} prompt tokens"


@check("metrics.prefix-cache.hits", MUST, spec=CONTRACT, needs=("metrics", "completions", "prefix-cache"))
def test_hits(vllm_server: Server, metrics_completion: Recording, metrics_stream: Recording) -> None:
    """No more tokens are found in the prefix cache than were looked up."""
    only_if(vllm_server.at_least(COUNTS_HITS), "before 0.8.0 /metrics gives a hit rate and no counts")
    moved = [Traffic(r) for r in (metrics_completion, metrics_stream)]
    pairs = [
        (f"vllm:{of}prefix_cache_hits_total", f"vllm:{of}prefix_cache_queries_total") for of in ("", "gpu_")
    ]
    known = [names for names in pairs if all(t.has(name) for t in moved for name in names)]
    need(known, "prefix-cache hits are not counted here")
    names = known[0]
    counts = [(t.key, t.grown(names[0]), t.grown(names[1])) for t in moved]
    wrong = [f"{key}: {hits:.0f} of {queries:.0f}" for key, hits, queries in counts if hits > queries]

    assert not wrong, listed(wrong)
