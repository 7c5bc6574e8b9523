"""What holds for the cached tokens of one answer holds for every answer of the run."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

from pytest_vllm import MUST, Metrics, Recording, Recordings, Server, check, listed, observe, only_if

from ..oracle.answers import CHAT, COMPLETIONS, ROUTES, answer_of, usages  # noqa: TID252 - suites lie together
from .scrapes import block
from .told import told, way

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Arguments that bring prefixes from elsewhere, in pieces of another size.
ELSEWHERE = ("kv-transfer-config", "kv-offloading-size", "kv-offloading-backend", "kv-events-config")
EXTERNAL = "vllm:external_prefix_cache_queries_total"
#: Fields that make a prompt what it is; with the others nothing is looked up in the cache.
PROMPT = (
    "model", "messages", "prompt", "tools", "tool_choice", "chat_template_kwargs", "add_generation_prompt",
    "continue_final_message", "add_special_tokens", "reasoning_effort", "documents", "cache_salt",
)  # fmt: skip
NOT_LOOKED_UP = ("prompt_logprobs", "echo", "use_beam_search", "truncate_prompt_tokens", "kv_transfer_params")
#: So many repeated prompts of which none was found say something, where others are found so often.
SEVERAL, USUALLY = 5, 0.8


@check(
    "cache.every.blocks",
    MUST,
    spec="vllm:design/prefix_caching/",
    needs=["metrics", "prefix-cache", "cached-tokens"],
    exchanges=["cache.config", "*"],
)
def test_blocks(cache_config: Recording, vllm_recordings: Recordings, vllm_server: Server) -> None:
    """What the cache finds are whole blocks, on every route, whole or streamed."""
    brought = [name for name in ELSEWHERE if vllm_server.args.get(name)]
    external = Metrics(cache_config.text).value(EXTERNAL)
    only_if(not brought and not external, "prefixes come from another cache, too")
    size = block(cache_config)
    found = [row for one in vllm_recordings.of("") for row in _cached(one)]
    only_if(found, "no answer found anything in the cache")
    observe("answers that found something", len(found))
    wrong = [f"{key}: {cached} tokens" for key, cached in found if cached % size]

    assert not wrong, f"blocks are of {size} tokens: {listed(wrong)}"


@check(
    "cache.every.told",
    MUST,
    spec="openai:chat/object#usage",
    needs=["metrics", "prefix-cache", "cached-tokens"],
    exchanges=["cache.config", "*"],
)
def test_told(cache_config: Recording, vllm_recordings: Recordings, vllm_server: Server) -> None:
    """What the cache finds of repeated prompts is told each way that they are asked."""
    found = _repeated(vllm_recordings.of(""), 2 * block(cache_config))
    if not vllm_server.at_least("0.11.0"):  # streamed completions told nothing of the cache
        found.pop((COMPLETIONS, True), None)
    judged = {asked: counts for asked, counts in found.items() if len(counts) >= SEVERAL}
    shares = {asked: sum(map(bool, counts)) / len(counts) for asked, counts in judged.items()}
    only_if(len(judged) > 1, "not enough prompts were repeated in two ways")
    only_if(max(shares.values()) >= USUALLY, "this server seldom finds a prompt that was answered before")
    observe(
        "repeated prompts found", "; ".join(f"{way(*asked)}: {share:.0%}" for asked, share in shares.items())
    )
    # a template that writes the time makes every conversation another one: neither way finds it
    alive = {path for (path, _), share in shares.items() if share} | {COMPLETIONS}
    none = [asked for asked, share in shares.items() if not share and asked[0] in alive]
    wrong = [f"{way(*asked)}: none of {len(judged[asked])}" for asked in none]

    assert not wrong, f"prompts that were answered before, found in the cache: {listed(wrong)}"


def _repeated(rows: Sequence[Recording], least: int) -> dict[tuple[str, bool], list[int]]:
    """Route and whether it streams -> what was found of each prompt that was answered before."""
    ended: dict[str, float] = {}
    asked = sorted(filter(_looked_up, rows), key=lambda one: one.sent)
    for one in asked:
        name = _prompt(one)
        ended[name] = min(ended.get(name, one.sent + one.seconds), one.sent + one.seconds)
    found: defaultdict[tuple[str, bool], list[int]] = defaultdict(list)
    for one in asked:
        answer = answer_of(one)
        long = answer is not None and answer.usage is not None and answer.usage[0] > least
        if long and ended[_prompt(one)] < one.sent:
            counts = [count for _, count in _cached(one)]
            found[one.request.path, one.request.streams].append(max(counts, default=0))
    return found


def _looked_up(one: Recording) -> bool:
    """Whether an answer is of one prompt that a cache is asked for."""
    asked = one.request.json
    if one.request.path not in (CHAT, COMPLETIONS) or not answer_of(one):
        return False
    given = asked.get("prompt", "")
    single = isinstance(given, str) or all(isinstance(part, int) for part in given)
    return single and not any(asked.get(name) not in (None, False) for name in NOT_LOOKED_UP)


def _prompt(one: Recording) -> str:
    return json.dumps([one.request.path, *map(one.request.json.get, PROMPT)], sort_keys=True)


def _cached(one: Recording) -> Iterator[tuple[str, int]]:
    """The answer's key and what it found in the cache, where it found something."""
    if one.request.path.partition("?")[0] in ROUTES and answer_of(one):
        yield from ((one.key, count) for usage in usages(one) for count in told(usage) if count)
