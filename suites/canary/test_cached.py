"""What `usage` tells of the prefix cache: a prompt that is new, and the same prompt again."""

from __future__ import annotations

from typing import Any

from pytest_vllm import MUST, Metrics, Recording, Server, check, only_if

SPEC = "openai:chat/object#usage"
HITS = "vllm:prefix_cache_hits_total"
NEEDS = ["completions", "cached-tokens", "metrics"]


@check("canary.usage.cold", MUST, spec="fault:vllm-project/vllm-ascend/issues/8910", needs=["completions"])
def test_cold(canary_cold: Recording) -> None:
    """A prompt never sent before counts as not cached, but for its first tokens."""
    usage = canary_cold.ok["usage"]
    cached = _cached(usage.get("prompt_tokens_details"))

    assert cached <= usage["prompt_tokens"] / 4, (
        f"{cached} of {usage['prompt_tokens']} tokens cached: {usage}"
    )


@check("canary.usage.warm", MUST, spec="fault:vllm-project/vllm/issues/18062", needs=NEEDS)
def test_warm(canary_warm: Recording) -> None:
    """What the prefix cache finds of a repeated prompt stands in its usage."""
    usage = canary_warm.ok["usage"]
    found, cached = _hits(canary_warm), _cached(usage.get("prompt_tokens_details"))
    only_if(found >= usage["prompt_tokens"] / 2, "the prefix cache found next to nothing")

    assert cached > 0, f"{found:.0f} tokens were found in the cache, usage tells {cached}: {usage}"


@check(
    "canary.usage.warm-response",
    MUST,
    spec="fault:vllm-project/vllm/issues/23363",
    needs=["responses", *NEEDS],
)
def test_responses_warm(canary_warm_response: Recording, vllm_server: Server) -> None:
    """Over Responses too, what the prefix cache finds stands in the usage."""
    only_if(vllm_server.at_least("0.11.0"), "Responses reports no cached tokens before 0.11")
    usage = canary_warm_response.ok["usage"]
    found, cached = _hits(canary_warm_response), _cached(usage.get("input_tokens_details"))
    only_if(found >= usage["input_tokens"] / 2, "the prefix cache found next to nothing")

    assert cached > 0, f"{found:.0f} tokens were found in the cache, usage tells {cached}: {usage}"


def _cached(details: Any) -> int:
    return int((details or {}).get("cached_tokens") or 0)


def _hits(answer: Recording) -> float:
    """Tokens that the prefix cache found during the exchange; whether it finds any is judged elsewhere."""
    before, after = Metrics(answer.metrics_before or ""), Metrics(answer.metrics_after or "")
    return after.delta(before, HITS) or 0.0
