"""What the prefix cache finds: whole blocks of what was computed before, and nothing else."""

from pytest_vllm import (
    MUST,
    Profile,
    Recording,
    Recordings,
    Server,
    check,
    need,
    observe,
    only_if,
    unexpected,
)

from .exchanges import block_size
from .scrapes import NEEDS, block, cached_tokens, capacity, findable, hits, length

NEVER = "fault:vllm-project/vllm/issues/51198"
TURNS = "fault:vllm-project/vllm/issues/31920"
DESIGN = "vllm:design/prefix_caching/"
USAGE = (*NEEDS, "cached-tokens")
#: The exchanges beside which the metrics are scraped.
SCRAPED = tuple(f"cache.{one}" for one in ("cold", "other", "warm", "again", "longer", "changed", "salted"))
#: Tokens of a cache that what runs beside in this gate cannot fill.
ROOM = 32_768
#: A larger block than this nobody asks for: vLLM chose it.
USUAL = 128


@check("cache.answered", MUST, spec=DESIGN, needs=("completions",), exchanges=("cache.",))
def test_answered(vllm_recordings: Recordings) -> None:
    """The same prompt is answered again and again, alone and beside others."""
    sent = [r for r in vllm_recordings.of("cache.") if r.key != "cache.config"]
    wrong = unexpected(sent)

    assert not wrong, "; ".join(wrong)


@check("cache.repeat.hits", MUST, spec=NEVER, needs=NEEDS)
def test_hits(vllm_server: Server, cache_config: Recording, cache_warm: Recording) -> None:
    """A prompt that was answered before is found in the cache."""
    size, found = block(cache_config), hits(cache_warm)
    observe("found of a repeated prompt", f"{found} of {length(cache_warm)} tokens, blocks of {size}")
    need(findable(length(cache_warm), size, vllm_server)[-1] > 0, "the prompt fills no block")

    assert found > 0, f"none of {length(cache_warm)} tokens, blocks of {size}"


@check("cache.repeat.exact", MUST, spec=DESIGN, needs=NEEDS)
def test_exact(vllm_server: Server, cache_config: Recording, cache_again: Recording) -> None:
    """Of a repeated prompt every full block is found, but for the last token."""
    size, found = block(cache_config), hits(cache_again)
    right = findable(length(cache_again), size, vllm_server)
    need(found, "nothing is found at all")

    assert found in right, f"{found} of {length(cache_again)} tokens, blocks of {size}, {right[0]} expected"


@check("cache.longer.hits", MUST, spec=TURNS, needs=NEEDS)
def test_longer(
    vllm_server: Server, cache_config: Recording, cache_again: Recording, cache_longer: Recording
) -> None:
    """The next turn of a conversation finds all full blocks of the one before."""
    size, found = block(cache_config), hits(cache_longer)
    right = findable(length(cache_again) + 1, size, vllm_server)
    need(hits(cache_again), "nothing is found even of the same prompt")

    assert found >= right[-1], f"{found} tokens, {right[-1]} of the turn before fill blocks of {size}"


@check("cache.cold.no-hits", MUST, spec=DESIGN, needs=NEEDS)
def test_cold(cache_cold: Recording, cache_other: Recording) -> None:
    """Nothing is found of a prompt that was never sent."""
    found = {r.key: hits(r) for r in (cache_cold, cache_other)}
    wrong = [f"{key}: {count} tokens" for key, count in found.items() if count]

    assert not wrong, f"found: {'; '.join(wrong)}"


@check("cache.changed.no-hits", MUST, spec=DESIGN, needs=NEEDS)
def test_changed(cache_changed: Recording) -> None:
    """A prompt whose first token differs finds nothing: the rest depends on it."""
    found = hits(cache_changed)

    assert found == 0, f"{found} of {length(cache_changed)} tokens were taken from another prompt"


@check("cache.salted.no-hits", MUST, spec="vllm:usage/security/", needs=NEEDS)
def test_salted(vllm_server: Server, cache_salted: Recording) -> None:
    """Another `cache_salt` finds nothing of what was computed without."""
    only_if(vllm_server.at_least("0.10.0"), "completions take a cache_salt from 0.10 on")
    found = hits(cache_salted)

    assert found == 0, f"{found} of {length(cache_salted)} tokens were taken from another tenant's request"


@check("cache.hits-within-prompt", MUST, spec=DESIGN, needs=NEEDS, exchanges=("cache.",))
def test_within(vllm_recordings: Recordings) -> None:
    """No more tokens are found than the prompt has."""
    sent = [r for r in vllm_recordings.of("cache.") if r.key in SCRAPED]
    only_if(sent, "no prompt of three blocks fits into the context")
    scraped = [r for r in sent if r.metrics_after is not None]
    need(scraped, "the metrics were not scraped")
    counts = [(r.key, hits(r), length(r)) for r in scraped]
    wrong = [f"{key}: {found} of {tokens}" for key, found, tokens in counts if found > tokens]

    assert not wrong, "; ".join(wrong)


@check("cache.usage.agrees", MUST, spec="fault:vllm-project/vllm-ascend/issues/16639", needs=USAGE)
def test_agrees(cache_cold: Recording, cache_warm: Recording, cache_again: Recording) -> None:
    """`cached_tokens` in the usage is what the metrics count as found."""
    both = [(r.key, cached_tokens(r), hits(r)) for r in (cache_cold, cache_warm, cache_again)]
    wrong = [f"{key}: usage {told}, metrics {counted}" for key, told, counted in both if told != counted]

    assert not wrong, "; ".join(wrong)


@check(
    "cache.usage.within-prompt",
    MUST,
    spec=DESIGN,
    needs=("completions", "cached-tokens"),
    exchanges=("cache.",),
)
def test_within_prompt(vllm_recordings: Recordings) -> None:
    """No answer has more cached tokens than its prompt has tokens."""
    asked = [r for r in vllm_recordings.of("cache.") if r.key != "cache.config"]
    only_if(asked, "no request of the cache's fits this server")
    answered = [r for r in asked if r.status == 200]
    need(answered, "no request was answered")
    counts = [(r.key, cached_tokens(r), r.ok["usage"]["prompt_tokens"]) for r in answered]
    wrong = [f"{key}: {cached} of {prompt}" for key, cached, prompt in counts if cached > prompt]

    assert not wrong, "; ".join(wrong)


@check("cache.beside.hits", MUST, spec=DESIGN, needs=USAGE, exchanges=("cache.beside",))
def test_beside(vllm_server: Server, vllm_recordings: Recordings, cache_config: Recording) -> None:
    """Several requests at once find the same prompt as one alone does."""
    size = block(cache_config)
    answered = [r for r in vllm_recordings.of("cache.beside[") if r.status == 200]
    need(answered, "no request was answered")
    counts = [(r.key, cached_tokens(r), findable(length(r), size, vllm_server)[-1]) for r in answered]
    observe(
        "found by several at once", f"{sum(n for _, n, _ in counts)} of {sum(map(length, answered))} tokens"
    )
    wrong = [f"{key}: {found} of {right}" for key, found, right in counts if found < right]
    held = capacity(cache_config)
    only_if(not wrong or held >= ROOM, f"not found, but others may have filled a cache of {held} tokens")

    assert not wrong, "; ".join(wrong)


@check(
    "cache.block.within-context",
    MUST,
    spec="fault:vllm-project/vllm/issues/48402",
    needs=("metrics", "prefix-cache"),
)
def test_within_context(vllm_server: Server, cache_config: Recording) -> None:
    """A block of the cache fits into the context twice, or nothing is ever found."""
    limit, size = vllm_server.max_model_len, block_size(cache_config.text)
    only_if(limit, "/v1/models does not report the context length")
    need(size, "cache_config_info gives no block size")
    only_if((size or 0) > USUAL, f"blocks of {size} tokens are as flags may ask for, the context is short")

    assert 2 * (size or 0) <= (limit or 0), f"blocks of {size} tokens, a context of {limit}"


@check("cache.block.expected", MUST, spec="profile:expect", needs=("metrics",))
def test_expected(vllm_profile: Profile, cache_config: Recording) -> None:
    """The cache's blocks are as large as the profile expects: less is never found."""
    only_if(vllm_profile.expect.block_size, "the profile expects no block size")
    size = block_size(cache_config.text)
    need(size, "cache_config_info gives no block size")

    assert size == vllm_profile.expect.block_size, f"{size} tokens, {vllm_profile.expect.block_size} expected"
