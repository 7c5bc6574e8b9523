"""Requests of the soak: a prompt pushed out of the cache and back, the longest one, sleeping, waking."""

from __future__ import annotations

import secrets

from pytest_vllm import Metrics, Recording, Request, Server, exchange, only_if, undecided

FIRST, LAST = 1100, 1150
TOKENS = 6
#: Tokens of one prompt that fills the cache, and of a cache that is still filled.
PROMPT, MOST = 2000, 600_000
#: Tokens of a prompt that is scored: more than a server reads at once by default.
SCORED = 2600
QUARTERS = 4


def capacity(scrape: str) -> int:
    """Tokens that the cache holds. Raises Undecided where that is not reported."""
    labels = Metrics(scrape).labels("vllm:cache_config_info")
    blocks, size = labels.get("num_gpu_blocks", ""), labels.get("block_size", "")
    if not (blocks.isdigit() and size.isdigit()):
        undecided("cache_config_info gives no number of blocks")
    return int(blocks) * int(size)


def fresh(length: int) -> list[int]:
    """So many tokens that were never sent before."""
    return [FIRST + secrets.randbelow(LAST - FIRST) for _ in range(length)]


def asked(server: Server, prompt: list[int]) -> Request:
    """A short greedy completion."""
    return server.completion(prompt, max_tokens=TOKENS, ignore_eos=True)


def flood(server: Server, config: Recording) -> Request:
    """Prompts that fill more than a quarter of the cache."""
    holds = capacity(config.text)
    if holds > MOST:
        undecided(f"a cache of {holds} tokens is not filled here")
    length = min(PROMPT, (server.max_model_len or PROMPT * 2) // 2)
    count = holds * 5 // 4 // QUARTERS // length + 1
    body = server.completion([fresh(length) for _ in range(count)], max_tokens=1, ignore_eos=True).json
    return Request("POST", "/v1/completions", json=body, timeout=900.0)


@exchange("soak.config")
def soak_config(server: Server) -> Request:
    """The metrics, for the size of the cache."""
    return server.get("/metrics")


@exchange("soak.kept", metrics=True)
def soak_kept(server: Server, soak_config: Recording) -> Request:
    """A prompt that was never sent."""
    del soak_config
    return asked(server, fresh(min(1000, (server.max_model_len or 4096) // 2)))


@exchange("soak.flood-first", alone=True)
def soak_flood_first(server: Server, soak_config: Recording, soak_kept: Recording) -> Request:
    """A quarter of a full cache."""
    del soak_kept
    return flood(server, soak_config)


@exchange("soak.flood-second", alone=True)
def soak_flood_second(server: Server, soak_config: Recording, soak_flood_first: Recording) -> Request:
    """The second quarter."""
    del soak_flood_first
    return flood(server, soak_config)


@exchange("soak.flood-third", alone=True)
def soak_flood_third(server: Server, soak_config: Recording, soak_flood_second: Recording) -> Request:
    """The third quarter."""
    del soak_flood_second
    return flood(server, soak_config)


@exchange("soak.flood-last", alone=True)
def soak_flood_last(server: Server, soak_config: Recording, soak_flood_third: Recording) -> Request:
    """The last quarter, and more than that."""
    del soak_flood_third
    return flood(server, soak_config)


@exchange("soak.evicted", metrics=True)
def soak_evicted(server: Server, soak_kept: Recording, soak_flood_last: Recording) -> Request:
    """The first prompt again, which is no longer in the cache."""
    del soak_flood_last
    return asked(server, list(soak_kept.request.json["prompt"]))


@exchange("soak.refilled", metrics=True)
def soak_refilled(server: Server, soak_evicted: Recording) -> Request:
    """And once more, which is in it again."""
    return asked(server, list(soak_evicted.request.json["prompt"]))


@exchange("soak.longest", alone=True)
def soak_longest(server: Server) -> Request:
    """The longest prompt that leaves room for a token, however long the context is."""
    tokens = (server.max_model_len or 0) - 1
    if tokens < 1:
        undecided("/v1/models does not report the context length")
    body = server.completion([FIRST + number % 50 for number in range(tokens)], max_tokens=1).json
    return Request("POST", "/v1/completions", json=body, timeout=900.0)


SLEEP = Request("POST", "/sleep?level=1", expect=200, timeout=300.0)
WAKE = Request("POST", "/wake_up", expect=200, timeout=300.0)


@exchange("soak.before-sleep", alone=True)
def soak_before_sleep(server: Server) -> Request:
    """A greedy answer."""
    return asked(server, [FIRST + number % 50 for number in range(40)])


@exchange("soak.sleep", alone=True)
def soak_sleep(soak_before_sleep: Recording) -> Request:
    """It is put to sleep."""
    del soak_before_sleep
    return SLEEP


@exchange("soak.wake", alone=True)
def soak_wake(soak_sleep: Recording) -> Request:
    """It is woken."""
    del soak_sleep
    return WAKE


@exchange("soak.sleep-again", alone=True)
def soak_sleep_again(soak_wake: Recording) -> Request:
    """And once more."""
    del soak_wake
    return SLEEP


@exchange("soak.wake-again", alone=True)
def soak_wake_again(soak_sleep_again: Recording) -> Request:
    """It is woken again."""
    del soak_sleep_again
    return WAKE


@exchange("soak.after-sleep", alone=True)
def soak_after_sleep(server: Server, soak_wake_again: Recording) -> Request:
    """The same greedy answer."""
    del soak_wake_again
    return asked(server, [FIRST + number % 50 for number in range(40)])


@exchange("soak.scored", alone=True)
def soak_scored(server: Server, soak_flood_last: Recording) -> Request:
    """The log probabilities of a prompt of several steps: they take gigabytes that no server sets aside."""
    del soak_flood_last
    only_if((server.max_model_len or SCORED * 2) > SCORED, f"the context has less than {SCORED} tokens")
    return server.completion(fresh(SCORED), max_tokens=1, prompt_logprobs=0, expect=None)
