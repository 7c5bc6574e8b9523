"""A server under load for long: it answers, rightly, gives everything back, and does not grow."""

from __future__ import annotations

from pytest_vllm import (
    ENVIRONMENT,
    MUST,
    PERFORMANCE,
    SHOULD,
    Measured,
    Metrics,
    Reading,
    Recording,
    Recordings,
    check,
    growth,
    need,
    observe,
    only_if,
    text_of,
)

ROBUST = "fault:vllm-project/vllm/issues/50425"
TUNING = "vllm:configuration/optimization/"
NEEDS = ("completions", "stream", "metrics")
USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
QUEUES = ("vllm:num_requests_running", "vllm:num_requests_waiting")
#: Requests that a soak has, at least.
LEAST = 50
#: What counts as nothing: a fraction of the cache.
NOTHING = 0.005
#: Growth over the load that is still none: a share of what is held, and never less than so many bytes.
SHARE, BYTES = 0.02, 16 * 2**20
MIB = 2**20


@check("soak.answered", MUST, spec=ROBUST, needs=NEEDS, tier="soak")
def test_answered(soak_load: Measured) -> None:
    """Every request of a long load is answered."""
    need(len(soak_load.samples) >= LEAST, f"only {len(soak_load.samples)} requests: {soak_load.stopped}")
    wrong = soak_load.errors
    observe("requests", f"{len(soak_load.samples)} in {soak_load.seconds:.4g} s, {len(wrong)} failed")

    assert not wrong, f"{len(wrong)} of {len(soak_load.samples)} failed: {wrong[0]}"
    need(not soak_load.unsure, soak_load.unsure)


@check("soak.right", MUST, spec=ROBUST, family=PERFORMANCE, needs=NEEDS, tier="soak")
def test_right(soak_load: Measured) -> None:
    """What is asked beside a long load is answered as it is alone."""
    need(soak_load.samples and not soak_load.errors, "not every request was answered")

    assert not soak_load.wrong, soak_load.wrong


@check("soak.given-back", MUST, spec=ROBUST, needs=NEEDS, tier="soak")
def test_given_back(soak_load: Measured) -> None:
    """After a long load nothing runs, nothing waits, and the cache holds nothing."""
    need(len(soak_load.samples) >= LEAST, f"only {len(soak_load.samples)} requests: {soak_load.stopped}")
    need(soak_load.after, "the metrics were not scraped")
    metrics = Metrics(soak_load.after)
    need(not metrics.fault, f"the metrics cannot be read: {metrics.fault}")
    queued = {name: metrics.value(name) or 0.0 for name in QUEUES}
    usage = [value for value in map(metrics.value, USAGE) if value is not None]
    need(usage, "the cache's usage is not there")
    wrong = [f"{name} is {value:.0f}" for name, value in queued.items() if value]
    wrong += [f"the cache's usage is {max(usage):.4f}"] * (max(usage) > NOTHING)

    assert not wrong, "; ".join(wrong)


@check("soak.preempted.none", SHOULD, spec=TUNING, family=ENVIRONMENT, needs=NEEDS, tier="soak")
def test_preempted(soak_load: Measured) -> None:
    """Under a long load no request is put back because the cache is full."""
    need(len(soak_load.samples) >= LEAST, f"only {len(soak_load.samples)} requests: {soak_load.stopped}")
    count = soak_load.grown("vllm:num_preemptions_total")
    need(count is not None, "vllm:num_preemptions_total is not there")

    assert not count, f"{count:.0f} times"


def steady(points: list[tuple[float, float]], what: str) -> str:
    """What is wrong with bytes over the load; empty when they did not grow. Raises Undecided or NotRun."""
    only_if(points, f"nothing here reports the {what} of the server")
    points = points[len(points) // 4 :]  # the first quarter is still warming up
    found = growth(points)
    need(found, f"{len(points)} readings of the {what} are too few: let it run longer")
    if found is None:
        return ""
    seconds = points[-1][0] - points[0][0]
    held = sum(value for _, value in points) / len(points)
    bound = max(SHARE * held, BYTES)
    low, high = found.low * seconds, found.high * seconds
    told = (
        f"{found.value * seconds / MIB:.1f} MiB in {seconds:.4g} s ({low / MIB:.1f} to {high / MIB:.1f}, "
        f"{found.value * 3600 / MIB:.4g} MiB an hour), {held / MIB:.0f} MiB held"
    )
    observe(what, told)
    need(low > bound or high <= bound, f"{told}; {bound / MIB:.1f} MiB lie within: let it run longer")
    return told if low > bound else ""


@check("soak.main-memory.steady", MUST, spec=ROBUST, needs=NEEDS, tier="soak")
def test_main_memory(soak_load: Measured, vllm_timeline: tuple[Reading, ...]) -> None:
    """The main memory that a server holds does not grow under a long load."""
    need(soak_load.samples, "there was no load")
    seen = [one for one in vllm_timeline if one.phase == "soak"]
    grown = steady([(one.at, float(one.resident)) for one in seen if one.resident], "main memory")

    assert not grown, f"it grew by {grown}"


@check("soak.gpu-memory.steady", MUST, spec=ROBUST, needs=NEEDS, tier="soak")
def test_gpu_memory(soak_load: Measured, vllm_timeline: tuple[Reading, ...]) -> None:
    """The accelerator memory of a server does not grow under a long load."""
    need(soak_load.samples, "there was no load")
    seen = [one for one in vllm_timeline if one.phase == "soak" and one.total]
    points = [(one.at, float((one.total or 0) - (one.free or 0))) for one in seen]
    grown = steady(points, "accelerator memory")

    assert not grown, f"it grew by {grown}"


def greedy(recording: Recording) -> bool:
    """Whether it is a whole greedy answer of one choice, which should come again."""
    body = recording.request.json
    return (
        isinstance(body, dict)
        and body.get("temperature") == 0
        and not body.get("stream")
        and body.get("n", 1) == 1
    )


def outline(recording: Recording) -> str:
    """Status, and the tools that are called."""
    if recording.status != 200 or not greedy(recording):
        return f"{recording.status or recording.error}"
    calls = (recording.json["choices"][0].get("message") or {}).get("tool_calls") or []
    return f"200, calls {[call['function']['name'] for call in calls]}"


def compared(before: Recordings, after: Recordings, prefix: str) -> list[tuple[Recording, Recording]]:
    """Pairs of recordings before and after the load. Raises Undecided when there are none."""
    pairs = [(before.get(one.key), one) for one in after.of(prefix) if one.request.path]
    need(pairs, f"nothing of {prefix} was recorded again")
    return pairs


@check("soak.tools.as-before", MUST, spec=ROBUST, needs=(*NEEDS, "tools"), tier="soak", exchanges=("tools.",))
def test_tools(soak_load: Measured, vllm_recordings: Recordings, vllm_again: Recordings) -> None:
    """After a long load tools are called as before it."""
    need(soak_load.samples, "there was no load")
    pairs = compared(vllm_recordings, vllm_again, "tools.")
    wrong = [f"{b.key}: {outline(b)}, then {outline(a)}" for b, a in pairs if outline(b) != outline(a)]
    observe("tool requests sent again", len(pairs))

    assert not wrong, f"{len(wrong)} of {len(pairs)}: {'; '.join(wrong[:3])}"


@check("soak.canary.as-before", MUST, spec=ROBUST, needs=NEEDS, tier="soak", exchanges=("canary.",))
def test_canary(soak_load: Measured, vllm_recordings: Recordings, vllm_again: Recordings) -> None:
    """After a long load the canaries are answered as before it."""
    need(soak_load.samples, "there was no load")
    pairs = compared(vllm_recordings, vllm_again, "canary.")
    wrong = [f"{b.key}: {b.status}, then {a.status or a.error}" for b, a in pairs if b.status != a.status]
    same = [
        text_of(b.json["choices"][0]) == text_of(a.json["choices"][0])
        for b, a in pairs
        if b.status == a.status == 200 and greedy(b) and b.json.get("choices")
    ]
    need(same, "no canary was answered both times")
    observe("greedy canaries alike", f"{sum(same)} of {len(same)}")

    assert not wrong, "; ".join(wrong[:3])
    assert sum(same) * 2 >= len(same), f"only {sum(same)} of {len(same)} greedy answers are as before"
