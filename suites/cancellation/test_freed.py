"""What a client leaves is given up: the batch slot, the cache, the work."""

from pytest_vllm import MUST, SHOULD, Metrics, Recording, check, need, only_if

from .exchanges import ENOUGH, asked

STREAM = "fault:vllm-project/vllm/issues/32442"
WHOLE = "fault:ROCm/ATOM/issues/1562"
CACHE = "fault:vllm-project/vllm/issues/50425"
NEEDS = ("completions", "stream", "metrics")
GENERATED = "vllm:generation_tokens_total"


def scrapes(recording: Recording) -> tuple[Metrics, Metrics]:
    """The metrics before and after. Raises Undecided when they were not scraped or cannot be read."""
    both = Metrics(recording.metrics_before or ""), Metrics(recording.metrics_after or "")
    need(recording.metrics_before and recording.metrics_after, "the metrics were not scraped")
    need(not both[0].fault and not both[1].fault, f"the metrics cannot be read: {both[1].fault}")
    return both


def held(recording: Recording) -> str:
    """What still runs or waits; empty when nothing does."""
    _, after = scrapes(recording)
    values = {name: after.value(f"vllm:num_requests_{name}") for name in ("running", "waiting")}
    need(any(value is not None for value in values.values()), "the gauges are not there")
    return ", ".join(f"{value:.0f} {name}" for name, value in values.items() if value)


def left(recording: Recording, *, gone: bool) -> None:
    """Go on only where the client left first; a short context ends an answer before anybody can."""
    most = int(recording.request.json["max_tokens"])
    only_if(gone or most >= ENOUGH, f"a context for {most} tokens ends an answer before its client can leave")
    body = recording.json if recording.status == 200 and not recording.request.streams else {}
    whole = (body.get("usage") or {}).get("completion_tokens") == most
    only_if(
        gone or not whole, f"{most} tokens come within {recording.seconds:.1f} s: no client can leave before"
    )
    need(gone, f"the answer came first: {recording.error or recording.status}")


def generated(recording: Recording, bound: int) -> int:
    """Tokens that were generated meanwhile; a short answer may be over before a departure is seen."""
    before, after = scrapes(recording)
    tokens, most = round(after.delta(before, GENERATED) or 0.0), int(recording.request.json["max_tokens"])
    only_if(tokens < bound or most >= ENOUGH, f"a context for {most} tokens shows no departure for certain")
    return tokens


@check("cancellation.stream.freed", MUST, spec=STREAM, needs=NEEDS)
def test_stream_freed(cancellation_stream: Recording) -> None:
    """A stream that its client left no longer runs or waits."""
    left(cancellation_stream, gone=cancellation_stream.aborted)

    assert not held(cancellation_stream), f"{held(cancellation_stream)} after the client left"


@check("cancellation.stream.stopped", MUST, spec=STREAM, needs=NEEDS)
def test_stream_stopped(cancellation_stream: Recording) -> None:
    """A stream that its client left is not generated to its end."""
    left(cancellation_stream, gone=cancellation_stream.aborted)
    tokens = generated(cancellation_stream, asked(cancellation_stream))

    assert tokens < asked(cancellation_stream), f"{tokens} tokens were generated for a client that left"


@check("cancellation.whole.freed", MUST, spec=WHOLE, needs=NEEDS)
def test_whole_freed(cancellation_whole: Recording) -> None:
    """A request that its client gave up before the answer no longer runs or waits."""
    left(cancellation_whole, gone=cancellation_whole.status is None)

    assert not held(cancellation_whole), f"{held(cancellation_whole)} after the client left"


@check("cancellation.whole.stopped", MUST, spec=WHOLE, needs=NEEDS)
def test_whole_stopped(cancellation_whole: Recording) -> None:
    """A request that its client gave up is not generated to its end."""
    left(cancellation_whole, gone=cancellation_whole.status is None)
    tokens = generated(cancellation_whole, asked(cancellation_whole))

    assert tokens < asked(cancellation_whole), f"{tokens} tokens were generated for a client that left"


@check("cancellation.choices.freed", MUST, spec=STREAM, needs=NEEDS)
def test_choices_freed(cancellation_choices: Recording) -> None:
    """All choices of a stream that its client left are given up."""
    left(cancellation_choices, gone=cancellation_choices.aborted)

    assert not held(cancellation_choices), f"{held(cancellation_choices)} after the client left"


@check("cancellation.choices.stopped", MUST, spec=STREAM, needs=NEEDS)
def test_choices_stopped(cancellation_choices: Recording) -> None:
    """No choice of a stream that its client left is generated to its end."""
    left(cancellation_choices, gone=cancellation_choices.aborted)
    one = asked(cancellation_choices) // 4
    tokens = generated(cancellation_choices, one)

    assert tokens < one, f"{tokens} tokens were generated for a client that left"


@check("cancellation.cache-freed", MUST, spec=CACHE, needs=NEEDS)
def test_cache_freed(cancellation_stream: Recording, cancellation_choices: Recording) -> None:
    """The cache that left streams held is free again."""
    names = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
    usages = [
        (r.key, scrapes(r)[1].value(name))
        for r in (cancellation_stream, cancellation_choices)
        for name in names
    ]
    need(any(usage is not None for _, usage in usages), "the cache's usage is not there")
    wrong = [f"{key}: {usage:.4f}" for key, usage in usages if usage and usage > 0.005]

    assert not wrong, f"the cache's usage after the client left: {'; '.join(wrong)}"


@check("cancellation.counted", SHOULD, spec="fault:vllm-project/vllm/issues/31503", needs=NEEDS)
def test_counted(cancellation_stream: Recording) -> None:
    """A stream that its client left is counted as `abort`."""
    left(cancellation_stream, gone=cancellation_stream.aborted)
    before, after = scrapes(cancellation_stream)
    counted = after.delta(before, "vllm:request_success_total", finished_reason="abort")

    assert counted == 1, f"counted {counted or 0:.0f} times"
