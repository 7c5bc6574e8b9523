"""What holds for the cached tokens of one answer holds for every answer of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Metrics, Recording, Recordings, Server, check, listed, observe, only_if

from ..oracle.answers import ROUTES, answer_of, usages  # noqa: TID252 - suites lie together
from .scrapes import block

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Arguments that bring prefixes from elsewhere, in pieces of another size.
ELSEWHERE = ("kv-transfer-config", "kv-offloading-size", "kv-offloading-backend", "kv-events-config")
EXTERNAL = "vllm:external_prefix_cache_queries_total"
DETAILS = ("prompt_tokens_details", "input_tokens_details")


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
    told = [row for one in vllm_recordings.of("") for row in _cached(one)]
    only_if(told, "no answer found anything in the cache")
    observe("answers that found something", len(told))
    wrong = [f"{key}: {cached} tokens" for key, cached in told if cached % size]

    assert not wrong, f"blocks are of {size} tokens: {listed(wrong)}"


def _cached(one: Recording) -> Iterator[tuple[str, int]]:
    """The answer's key and what it found in the cache, where it found something."""
    if one.request.path.partition("?")[0] in ROUTES and answer_of(one):
        for usage in usages(one):
            told: list[Any] = [(usage.get(name) or {}).get("cached_tokens") for name in DETAILS]
            told.append(usage.get("cache_read_input_tokens"))
            yield from ((one.key, count) for count in told if isinstance(count, int) and count)
