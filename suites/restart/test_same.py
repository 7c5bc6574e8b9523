"""That the server which comes back is the one that went."""

from typing import Any

from pytest_vllm import ENVIRONMENT, MUST, Recording, check, near_tie, need, observe

from .seen import cache_tokens

SERVING = "vllm:serving/"
#: The part of the cache that a restart may cost: what else holds memory varies a little.
LESS = 0.05


def base_models(listing: Recording) -> list[tuple[str, Any]]:
    """Names and context lengths of the base models; adapters that were loaded at run time go."""
    return sorted(
        (one["id"], one.get("max_model_len")) for one in listing.ok["data"] if not one.get("parent")
    )


def entries(answer: Recording) -> list[dict[str, Any]]:
    """An answer's tokens with what else was likely, as `near_tie` reads them."""
    given = answer.ok["choices"][0].get("logprobs") or {}
    need(given.get("tokens") and given.get("top_logprobs"), "the answer has no log probabilities")
    pairs = zip(given["tokens"], given["top_logprobs"], strict=True)
    return [
        {
            "token": token,
            "top_logprobs": [{"token": name, "logprob": of} for name, of in (tops or {}).items()],
        }
        for token, tops in pairs
    ]


@check("restart.same-models", MUST, spec=SERVING, family=ENVIRONMENT, tier="soak")
def test_models(restart_models_before: Recording, restart_models_after: Recording) -> None:
    """It serves the same base models with the same context as before."""
    before, after = base_models(restart_models_before), base_models(restart_models_after)

    assert before == after, f"before {before}, after {after}"


@check("restart.same-text", MUST, spec=SERVING, tier="soak", needs=["completions", "logprobs"])
def test_text(
    restart_text_before: Recording, restart_text_again: Recording, restart_text_after: Recording
) -> None:
    """A greedy answer is as before, but where two tokens were about equally likely."""
    before, again, after = (
        "".join(entry["token"] for entry in entries(one))
        for one in (restart_text_before, restart_text_again, restart_text_after)
    )
    need(before == again, "this server gives another greedy answer each time")
    tied = near_tie(entries(restart_text_before), before, after)

    assert before == after or tied, f"before {before!r:.160}, after {after!r:.160}"


@check("restart.same-cache", MUST, spec=SERVING, family=ENVIRONMENT, tier="soak", needs=["metrics"])
def test_cache(restart_metrics_before: Recording, restart_metrics_after: Recording) -> None:
    """The cache holds as many tokens as before, within five percent."""
    before, after = cache_tokens(restart_metrics_before), cache_tokens(restart_metrics_after)
    observe("tokens in the cache", f"{before}, then {after}")

    assert after >= (1 - LESS) * before, f"{before} tokens before, {after} after"
