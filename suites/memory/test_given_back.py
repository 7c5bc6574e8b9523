"""What a request held is free again once it is over, however it ended."""

from pytest_vllm import MUST, Metrics, Recording, Recordings, check, need, only_if, unexpected

from .exchanges import LONG

SPEC = "fault:vllm-project/vllm/issues/50425"
NEEDS = ("metrics", "completions")
USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
#: What counts as nothing: a fraction of the cache.
NOTHING = 0.005


def usage(scrape: str | None) -> float:
    """The cache's usage. Raises Undecided where it is not reported."""
    need(scrape, "the metrics were not scraped")
    metrics = Metrics(scrape or "")
    need(not metrics.fault, f"the metrics cannot be read: {metrics.fault}")
    values = [value for value in (metrics.value(name) for name in USAGE) if value is not None]
    need(values, "the cache's usage is not there")
    return max(values)


def held(recording: Recording) -> list[str]:
    """The cache's usage right after an exchange, where it is more than nothing and more than before."""
    before, after = usage(recording.metrics_before), usage(recording.metrics_after)
    need(
        after <= NOTHING or after > before, f"the usage was {before:.4f} before, so nothing can be told apart"
    )
    return [f"the cache's usage is {after:.4f}"] if after > NOTHING else []


@check("memory.answered", MUST, spec=SPEC, needs=("completions",), exchanges=("memory.",))
def test_answered(vllm_recordings: Recordings) -> None:
    """Requests of any length in the context are answered, longer ones refused."""
    wrong = unexpected(r for r in vllm_recordings.of("memory.") if r.key != "memory.longest-scored")

    assert not wrong, "; ".join(wrong)


@check("memory.finished.freed", MUST, spec=SPEC, needs=NEEDS)
def test_finished(memory_finished: Recording) -> None:
    """The cache that a finished request held is free again."""
    need(memory_finished.status == 200, f"answered with {memory_finished.status}")
    wrong = held(memory_finished)

    assert not wrong, f"after it ended, {'; '.join(wrong)}"


@check("memory.many.freed", MUST, spec=SPEC, needs=NEEDS)
def test_many(memory_many: Recording) -> None:
    """The cache that eight requests held at once is free again."""
    need(memory_many.status == 200, f"answered with {memory_many.status}")
    wrong = held(memory_many)

    assert not wrong, f"after they ended, {'; '.join(wrong)}"


@check("memory.left.freed", MUST, spec=SPEC, needs=(*NEEDS, "stream"))
def test_left(memory_left: Recording) -> None:
    """The cache that a request held whose client left is free again."""
    most = int(memory_left.request.json["max_tokens"])
    only_if(
        memory_left.aborted or most >= LONG,
        f"a context for {most} tokens ends an answer before its client can leave",
    )
    need(memory_left.aborted, f"the stream ended first: {memory_left.error}")
    wrong = held(memory_left)

    assert not wrong, f"after the client left, {'; '.join(wrong)}"


@check("memory.refused.freed", MUST, spec=SPEC, needs=NEEDS)
def test_refused(memory_refused: Recording) -> None:
    """A request that is refused because one of its prompts is too long holds nothing."""
    memory_refused.answered()
    wrong = held(memory_refused)

    assert not wrong, f"after it was answered with {memory_refused.status}, {'; '.join(wrong)}"
