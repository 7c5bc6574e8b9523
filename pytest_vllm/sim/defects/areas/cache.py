"""Defects of the prefix cache: what it finds, what it counts, what it gives back."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.edit import set_text
from pytest_vllm.sim.defects.make import ignores, metric, spoil
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, live, only, remembering

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.reply import Exchange
    from pytest_vllm.sim.engine.sequence import Sequence

HERE = (COMPLETIONS,)
CACHED = "usage.prompt_tokens_details.cached_tokens"
HITS = "vllm:prefix_cache_hits_total"
#: Blocks that have to match at once on a hybrid model.
GROUP = 64


@defect(
    "cache.never-hits",
    on="cache_hits",
    faults=["CACHE-001", "CACHE-005", "CACHE-006"],
    catches=["cache.repeat.hits"],
)
def never_hits(blocks: int, sequence: Sequence) -> int:
    """The prefix cache is asked but never finds anything."""
    del blocks, sequence
    return 0


@defect("cache.last-block-dropped", on="cache_hits", faults=["CACHE-023"], catches=["cache.repeat.exact"])
def last_block_dropped(blocks: int, sequence: Sequence) -> int:
    """The last block that matches is computed again, as if a drafting model needed it."""
    del sequence
    return max(0, blocks - 1)


@defect(
    "cache.only-long-prompts",
    on="cache_hits",
    faults=["CACHE-003", "CACHE-022", "CACHE-027"],
    catches=["cache.repeat.hits"],
)
def only_long_prompts(blocks: int, sequence: Sequence) -> int:
    """Only whole groups of 64 blocks are found, which nothing tells: shorter prompts never hit."""
    del sequence
    return blocks // GROUP * GROUP


def _one_conversation() -> Callable[..., int]:
    last: dict[str, list[int]] = {"prompt": []}

    def found(blocks: int, sequence: Sequence) -> int:
        """Two long conversations that take turns push each other out of the cache."""
        begin, last["prompt"] = last["prompt"][:16], list(sequence.prompt)
        return blocks if begin == sequence.prompt[:16] else 0

    return found


add(
    "cache.one-conversation",
    "Two conversations that take turns push each other out of the cache.",
    {"cache_hits": remembering(_one_conversation)},
    faults=["CACHE-030"],
    catches=["cache.repeat.hits"],
)
metric(
    "cache.hits-not-counted",
    "Hits happen and the metric stays 0.",
    HITS,
    lambda value: value * 0,
    faults=["CACHE-008"],
    catches=["cache.repeat.hits", "cache.usage.agrees"],
)
metric(
    "cache.hits-counted-per-layer",
    "Hits are counted once for each layer of the model.",
    HITS,
    lambda value: value * 32,
    catches=["cache.hits-within-prompt", "cache.repeat.exact"],
)
spoil(
    "cache.usage-says-nothing-cached",
    "The usage says that nothing was cached.",
    HERE,
    CACHED,
    0,
    catches=["cache.usage.agrees"],
)
spoil(
    "cache.usage-beyond-prompt",
    "The usage counts the cached tokens of all requests of the batch.",
    HERE,
    CACHED,
    lambda tokens: tokens and tokens + 10_000,
    catches=["cache.usage.within-prompt", "cache.usage.agrees"],
)
ignores(
    "cache.salt-ignored",
    "The salt of a request is ignored: tenants share prefixes.",
    ["cache_salt"],
    catches=["cache.salted.no-hits"],
)


def _queries_as_hits(text: str, engine: Any) -> str:
    del engine
    queries = dict(re.findall(r"^vllm:prefix_cache_queries_total(\{.*\}) (\S+)$", text, re.MULTILINE))
    return re.sub(
        r"^(vllm:prefix_cache_hits_total(\{.*\})) \S+$",
        lambda found: f"{found[1]} {queries.get(found[2], '0')}",
        text,
        flags=re.MULTILINE,
    )


add(
    "cache.lookups-counted-as-hits",
    "Every token that is looked up counts as found.",
    {"metrics": _queries_as_hits},
    catches=["cache.cold.no-hits"],
)


@defect("cache.first-token-ignored", on="prompt", catches=["cache.changed.no-hits"])
def first_token_ignored(prompt: list[int], body: Any) -> list[int]:
    """What is found depends on all tokens but the first: another prompt's blocks are taken."""
    del body
    alike = len(prompt) > 40 and all(token >= 1100 for token in prompt[:40])
    return [1100, *prompt[1:]] if alike else prompt


def _large_block(text: str, engine: Any) -> str:
    del engine
    return re.sub(r'((?:effective_attention_)?block_size)="16"', r'\1="8320"', text)


add(
    "cache.block-beyond-context",
    "A block of the cache is larger than the context: nothing is ever found, and nothing says so.",
    {"metrics": _large_block},
    faults=["CACHE-028"],
    catches=["cache.block.within-context"],
)


def _garble(body: dict[str, Any]) -> None:
    for choice in body.get("choices", []):
        set_text(choice, "500 50 5 0 0 0")
        given = choice.get("logprobs")
        if given and given.get("tokens"):
            given["tokens"] = ["token_id:7" for _ in given["tokens"]]


@defect(
    "cache.warm-answer-wrong",
    on="json",
    paths=HERE,
    faults=["CACHE-010", "CACHE-015", "CACHE-016", "CACHE-017", "CACHE-018", "CACHE-025"],
    catches=["cache.repeat.same-answer"],
)
def warm_answer_wrong(body: Any, exchange: Exchange) -> Any:
    """What is computed behind a cached prefix is garbled."""
    del exchange
    usage = body.get("usage") or {} if isinstance(body, dict) else {}
    if (usage.get("prompt_tokens_details") or {}).get("cached_tokens"):
        _garble(body)
    return body


def _crowded() -> Callable[..., Any]:
    asked: Counter[str] = Counter()

    def garbled(body: Any, exchange: Exchange) -> Any:
        """See the summary."""
        prompt = str((exchange.body or {}).get("prompt"))
        asked[prompt] += 1
        if asked[prompt] > 3 and len(prompt) > 200 and isinstance(body, dict):
            _garble(body)
        return body

    return only(HERE, garbled)


add(
    "cache.crowd-garbled",
    "Several requests at once that share a long cached prefix get garbage.",
    {"json": remembering(_crowded), "ready": live},
    faults=["CACHE-013", "CONC-002"],
    catches=["cache.beside.same-answer"],
)


def _whole(body: Any, exchange: Exchange) -> Any:
    del exchange
    usage = body.get("usage") or {} if isinstance(body, dict) else {}
    details = usage.get("prompt_tokens_details") or {}
    if details.get("cached_tokens") and usage["prompt_tokens"] % 16 == 0:
        details["cached_tokens"] = usage["prompt_tokens"]
    return body


add(
    "cache.whole-prompt-counted",
    "Of a prompt that fills its blocks all tokens count as cached, also the last, which is always computed.",
    {"json": only(HERE, _whole)},
    catches=["cache.rung.exact"],
)


def _common(one: list[int], other: list[int]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _answers_forgotten() -> Callable[..., int]:
    sent: list[list[int]] = []

    def found(blocks: int, sequence: Sequence) -> int:
        """Only blocks of prompts are found, not those that an answer filled."""
        alike = [_common(one, sequence.prompt) for one in sent]
        sent.append(list(sequence.prompt))
        return min(blocks, max(alike, default=0) // 16)

    return found


add(
    "cache.answers-forgotten",
    "Blocks that an answer filled are never found: each turn of an agent computes the one before again.",
    {"cache_hits": remembering(_answers_forgotten)},
    faults=["CACHE-030"],
    catches=["cache.turns.exact"],
)


@defect("cache.edit-ignored", on="prompt", catches=["cache.edited.exact"])
def edit_ignored(prompt: list[int], body: Any) -> list[int]:
    """What is found depends on the beginning of a prompt alone: blocks of another continuation are taken."""
    del body
    alike = len(prompt) > 20 and all(1100 <= token < 1202 for token in prompt[:20])
    return [prompt[0], *(token - 51 if token > 1150 else token for token in prompt[1:])] if alike else prompt


def _crowd_misses() -> Callable[..., int]:
    asked: Counter[tuple[int, ...]] = Counter()

    def found(blocks: int, sequence: Sequence) -> int:
        """A prompt that was found a few times is not found any more."""
        asked[tuple(sequence.prompt)] += 1
        return 0 if asked[tuple(sequence.prompt)] > 4 else blocks

    return found


add(
    "cache.crowd-misses",
    "Requests at once that share a cached prompt compute it each for itself.",
    {"cache_hits": remembering(_crowd_misses)},
    faults=["CACHE-013"],
    catches=["cache.beside.hits"],
)


spoil(
    "cache.untold-whole",
    "Whole chat answers tell nothing of what the cache found.",
    (CHAT,),
    "usage.prompt_tokens_details",
    None,
    catches=["cache.every.told"],
)
