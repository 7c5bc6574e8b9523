"""What fits: the cache, the promised context, the longest request."""

from typing import Any

from pytest_vllm import ENVIRONMENT, MUST, Metrics, Profile, Recording, Server, check, need, observe, only_if

from .exchanges import CHEAP

NEEDS = ("metrics", "completions")
ONE = "fault:vllm-project/vllm/issues/27934"


def config(scraped: Recording) -> dict[str, int]:
    """The numbers of `cache_config_info`. Raises Undecided when they are not reported."""
    need(scraped.metrics_after, "the metrics were not scraped")
    labels = Metrics(scraped.metrics_after or "").labels("vllm:cache_config_info")
    need(labels, "cache_config_info is not there")
    return {name: int(value) for name, value in labels.items() if value.isdigit()}


def tokens(scraped: Recording) -> int:
    """Tokens that the cache holds: as reported, else blocks times their size."""
    told = config(scraped)
    need("num_gpu_blocks" in told and "block_size" in told, "cache_config_info gives no number of blocks")
    return told.get("kv_cache_size_tokens") or told["num_gpu_blocks"] * told["block_size"]


@check("memory.capacity.one-request", MUST, spec=ONE, needs=NEEDS)
def test_one_request(vllm_server: Server, memory_finished: Recording) -> None:
    """The cache holds one request as long as the context allows."""
    only_if(vllm_server.max_model_len, "/v1/models does not report the context length")
    fits, longest = tokens(memory_finished), vllm_server.max_model_len or 0
    observe("requests of full length that fit at once", f"{fits / longest:.1f}")

    assert fits >= longest, f"it holds {fits} tokens, the context is {longest}"


@check("memory.capacity.promised", MUST, spec="profile:limits", family=ENVIRONMENT, needs=NEEDS)
def test_promised(vllm_profile: Profile, memory_finished: Recording) -> None:
    """The cache holds as many tokens as the profile promises."""
    bound: Any = vllm_profile.limits.get("kv-cache-tokens")
    only_if(bound and isinstance(bound.min, int | float), "the profile sets no floor in tokens")
    fits = tokens(memory_finished)

    assert fits >= bound.min, f"it holds {fits} tokens, the floor is {bound.min:.0f}"


@check("memory.longest.answered", MUST, spec="fault:vllm-project/vllm/issues/26951", needs=("completions",))
def test_longest(vllm_server: Server, memory_longest_scored: Recording) -> None:
    """The longest prompt that the context allows is answered."""
    limit = vllm_server.max_model_len
    only_if(limit and limit <= CHEAP, f"a context of {limit} tokens is not filled here")
    memory_longest_scored.answered()
    status = memory_longest_scored.status

    assert status == 200, (
        f"{(limit or 0) - 1} tokens are answered with {status}: {memory_longest_scored.text[:120]}"
    )


@check("memory.longest.counted", MUST, spec="openai:completions/object", needs=("completions",))
def test_counted(memory_longest_scored: Recording) -> None:
    """A long prompt is computed to its last token, not cut."""
    sent, used = (
        len(memory_longest_scored.request.json["prompt"]),
        memory_longest_scored.ok["usage"]["prompt_tokens"],
    )

    assert used == sent, f"{sent} tokens were sent, {used} are counted"
