"""Requests of the cache suite: one prompt again and again, with scrapes around each.

All run alone and one after the other: cold, another prompt, the same again twice, changed early, salted.
The prompt begins with a random piece, so that a server that already served a run has not seen it.
"""

import secrets
from typing import Any

from pytest_vllm import Case, Metrics, Recording, Request, Server, cases, exchange

#: Tokens that any vocabulary of 1,200 entries has and that are neither bytes nor special tokens.
FIRST, LAST = 1100, 1150
TOKENS = 6
#: Blocks that a repeated prompt fills, and what is left over for none.
BLOCKS, REST = 3, 5
#: The block size that prompts are made for when the server tells none, and the largest one worth trying.
USUAL, LARGEST = 16, 256

cache_round = cases("cache_round", [{"id": name} for name in ("one", "two", "three", "four")])


def block_size(scrape: str) -> int | None:
    """Tokens per block as `cache_config_info` tells it; None when it tells none."""
    metrics = Metrics(scrape)
    infos = [] if metrics.fault else metrics.named("vllm:cache_config_info")
    labels = infos[0].labels if infos else {}
    told = labels.get("effective_attention_block_size", "")
    told = told if told.isdigit() else labels.get("block_size", "")
    return int(told) if told.isdigit() and int(told) else None


def fresh(length: int) -> list[int]:
    """So many tokens that were never sent before."""
    return [FIRST + secrets.randbelow(LAST - FIRST) for _ in range(length)]


def asked(server: Server, prompt: list[int], **params: Any) -> Request:
    """A short greedy completion of these tokens, with what else was likely."""
    return server.completion(
        prompt, max_tokens=TOKENS, ignore_eos=True, logprobs=3, return_tokens_as_token_ids=True, **params
    )


def prompt_of(recording: Recording) -> list[int]:
    """The tokens that an exchange sent."""
    return list(recording.request.json["prompt"])


@exchange("cache.config")
def cache_config(server: Server) -> Request:
    """The metrics, for the size of a cache block."""
    return server.get("/metrics")


@exchange("cache.cold", metrics=True)
def cache_cold(server: Server, cache_config: Recording) -> Request:
    """A prompt of three blocks and a few tokens that was never sent before."""
    size = min(block_size(cache_config.text) or USUAL, LARGEST)
    return asked(server, fresh(BLOCKS * size + REST))


@exchange("cache.other", metrics=True)
def cache_other(server: Server, cache_cold: Recording) -> Request:
    """Another prompt of that length: two conversations take turns."""
    return asked(server, fresh(len(prompt_of(cache_cold))))


@exchange("cache.warm", metrics=True)
def cache_warm(server: Server, cache_cold: Recording, cache_other: Recording) -> Request:
    """The first prompt again."""
    del cache_other
    return asked(server, prompt_of(cache_cold))


@exchange("cache.again", metrics=True)
def cache_again(server: Server, cache_warm: Recording) -> Request:
    """And once more."""
    return asked(server, prompt_of(cache_warm))


@exchange("cache.longer", metrics=True)
def cache_longer(server: Server, cache_again: Recording) -> Request:
    """The next turn: the same prompt with more behind it."""
    prompt = prompt_of(cache_again)
    return asked(server, [*prompt, *fresh(len(prompt))])


@exchange("cache.changed", metrics=True)
def cache_changed(server: Server, cache_again: Recording) -> Request:
    """The same prompt, its first token another one."""
    first, *rest = prompt_of(cache_again)
    return asked(server, [LAST + first - FIRST + 1, *rest])


@exchange("cache.salted", metrics=True)
def cache_salted(server: Server, cache_again: Recording) -> Request:
    """The same prompt under a salt of its own; changed once more where the version knows no salt."""
    prompt = prompt_of(cache_again)
    if server.at_least("0.10.0"):
        return asked(server, prompt, cache_salt=secrets.token_hex(8))
    return asked(server, [LAST + prompt[0] - FIRST + 2, *prompt[1:]])


@exchange("cache.beside")
def cache_beside(server: Server, cache_again: Recording, cache_round: Case) -> Request:
    """The same prompt, asked for by several at once."""
    del cache_round
    return asked(server, prompt_of(cache_again))
