"""What comes back: a prompt that was pushed out of the cache, a server that slept, the longest request."""

from __future__ import annotations

from pytest_vllm import MUST, Metrics, Recording, Server, check, need, observe, only_if

from .exchanges import MOST, capacity

DESIGN = "vllm:design/prefix_caching/"
SLEEP = "vllm:features/sleep_mode/"
HITS = "vllm:prefix_cache_hits_total"
CACHE = ("completions", "metrics", "prefix-cache")


def hits(recording: Recording) -> float:
    """Prompt tokens that were found. Raises Undecided where that cannot be known."""
    need(recording.status == 200, f"{recording.key} was answered with {recording.status or recording.error}")
    need(recording.metrics_before and recording.metrics_after, "the metrics were not scraped")
    before, after = Metrics(recording.metrics_before or ""), Metrics(recording.metrics_after or "")
    found = after.delta(before, HITS)
    need(found is not None, f"{HITS} is not there")
    return found or 0.0


@check("soak.cache.evicts", MUST, spec=DESIGN, needs=CACHE, tier="soak")
def test_evicts(soak_config: Recording, soak_flood_last: Recording, soak_evicted: Recording) -> None:
    """A full cache takes new prompts and lets go of the oldest."""
    only_if(capacity(soak_config.text) <= MOST, f"a cache of more than {MOST} tokens is not filled here")
    soak_flood_last.answered()
    status = soak_flood_last.status
    assert status == 200, f"the last prompts are answered with {status}: {soak_flood_last.text[:120]}"
    found, sent = hits(soak_evicted), len(soak_evicted.request.json["prompt"])

    assert found == 0, f"{found:.0f} of {sent} tokens of the oldest prompt are still there"


@check("soak.cache.refills", MUST, spec=DESIGN, needs=CACHE, tier="soak")
def test_refills(
    soak_config: Recording, soak_kept: Recording, soak_evicted: Recording, soak_refilled: Recording
) -> None:
    """A prompt that was pushed out of the cache is found again once recomputed."""
    only_if(capacity(soak_config.text) <= MOST, f"a cache of more than {MOST} tokens is not filled here")
    need(hits(soak_evicted) == 0, "it was not pushed out")
    need(hits(soak_kept) == 0, "it was known before it was sent")
    found, sent = hits(soak_refilled), len(soak_refilled.request.json["prompt"])
    observe("found once it was computed again", f"{found:.0f} of {sent} tokens")

    assert found * 4 >= sent * 3, f"{found:.0f} of {sent} tokens are found"


@check(
    "soak.longest.answered", MUST, spec="fault:vllm-project/vllm/issues/26951", needs=CACHE[:1], tier="soak"
)
def test_longest(vllm_server: Server, soak_longest: Recording) -> None:
    """The longest prompt that the context allows is answered, however long that is."""
    only_if(vllm_server.max_model_len, "/v1/models does not report the context length")
    soak_longest.answered()
    status, sent = soak_longest.status, len(soak_longest.request.json["prompt"])

    assert status == 200, f"{sent} tokens are answered with {status}: {soak_longest.text[:120]}"
    used = soak_longest.ok["usage"]["prompt_tokens"]
    assert used == sent, f"{sent} tokens were sent, {used} are counted"


@check(
    "soak.prompt.scored",
    MUST,
    spec="fault:vllm-project/vllm/issues/14239",
    needs=("completions", "logprobs"),
    tier="soak",
)
def test_scored(soak_scored: Recording) -> None:
    """Each token of a prompt that is read in several steps has its log probability."""
    soak_scored.answered()
    only_if(soak_scored.status != 400, f"refused: {soak_scored.text[:120]}")
    answer = soak_scored.ok
    tokens, rows = answer["usage"]["prompt_tokens"], answer["choices"][0].get("prompt_logprobs") or []
    found = [[entry.get("logprob") for entry in (row or {}).values()] for row in rows[1:]]
    void = [at for at, values in enumerate(found, 1) if not values or None in values]

    assert len(rows) == tokens, f"{len(rows)} entries for {tokens} tokens"
    assert not void, f"{len(void)} of {tokens} tokens have none, the first is number {void[0]}"


@check("soak.sleep.wakes", MUST, spec=SLEEP, needs=("completions", "sleep"), tier="soak")
def test_wakes(
    soak_before_sleep: Recording,
    soak_wake: Recording,
    soak_wake_again: Recording,
    soak_after_sleep: Recording,
) -> None:
    """A server that was put to sleep and woken twice answers as before."""
    need(soak_before_sleep.status == 200, f"before, it answered with {soak_before_sleep.status}")
    woken = [soak_wake.status, soak_wake_again.status]
    assert woken == [200, 200], f"waking it is answered with {woken}"
    soak_after_sleep.answered()
    status = soak_after_sleep.status
    assert status == 200, f"woken, it answers with {status}: {soak_after_sleep.text[:120]}"
    texts = [one.ok["choices"][0]["text"] for one in (soak_before_sleep, soak_after_sleep)]

    assert texts[0] == texts[1], f"before {texts[0]!r}, woken {texts[1]!r}"
