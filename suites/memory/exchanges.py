"""Requests of the memory suite: what a server has to give back, and the longest that it has to take."""

from __future__ import annotations

import secrets
from typing import Any

from pytest_vllm import Metrics, Recording, Request, Server, exchange, only_if

#: Long enough that a block which is kept shows.
PROMPT = [1100 + number % 50 for number in range(300)]
TOKENS = 4
#: Tokens of an answer whose client leaves.
LONG = 1000
#: Tokens of a cache that is filled here at most, and seconds that reading them may take.
FILLED, PATIENCE = 40_000, 30.0
#: Requests that fill it at least, and those of them that are asked once more: the last are put back first.
CROWD, AGAIN = 4, (0, -2, -1)
#: Tokens that a server may read in one step; answers go on until the last prompt was read.
STEP = 1024
#: A context up to which the longest request is cheap on any server.
CHEAP = 5000


def fitting(server: Server) -> list[int]:
    """The prompt, cut to half the context where that is short."""
    return PROMPT[: (server.max_model_len or 4096) // 2]


@exchange("memory.finished", metrics=True)
def memory_finished(server: Server) -> Request:
    """A completion that ends at its token limit."""
    return server.completion(fitting(server), max_tokens=TOKENS, ignore_eos=True)


@exchange("memory.many", metrics=True)
def memory_many(server: Server) -> Request:
    """Eight completions of prompts that share nothing, in one request, each longer than the one before."""
    prompts = [[1200 + number, *fitting(server)[: 41 + 37 * number]] for number in range(8)]
    return server.completion(prompts, max_tokens=TOKENS, ignore_eos=True)


@exchange("memory.left", metrics=True)
def memory_left(server: Server) -> Request:
    """A stream whose client goes away after two events."""
    prompt = fitting(server)
    room = min(LONG, (server.max_model_len or 4096) - len(prompt))
    body = server.completion(prompt, max_tokens=room, ignore_eos=True, stream=True)
    return Request(body.method, body.path, json=body.json, abort_after=2)


@exchange("memory.longest-scored", metrics=True)
def memory_longest_scored(server: Server, memory_finished: Recording) -> Request:
    """The longest prompt that leaves room for a token; a short one where that is not cheap."""
    del memory_finished
    longest = (server.max_model_len or 0) - 1
    tokens = longest if 0 < longest < CHEAP else len(fitting(server))
    scored = {"logprobs": 2} if server.can("logprobs") else {}
    prompt = [1100 + number % 50 for number in range(tokens)]
    return server.completion(prompt, max_tokens=1, ignore_eos=True, **scored)


@exchange("memory.refused", metrics=True)
def memory_refused(server: Server, memory_longest_scored: Recording) -> Request:
    """Two prompts in one request, of which one does not fit into the context: the whole is refused."""
    del memory_longest_scored
    beyond = [1100 + number % 50 for number in range((server.max_model_len or 4096) + 1)]
    return server.completion([fitting(server), beyond], max_tokens=TOKENS, ignore_eos=True, expect=400)


def crowd(server: Server, scraped: Recording, earlier: Recording) -> tuple[list[list[int]], int]:
    """Prompts that fill the whole cache, none with another's beginning, and how long their answers are.

    Each fills its blocks but for one token, so that with two tokens more all of them need a block, and some
    have to be put back. Not run where the cache is large or takes long to fill.
    """
    labels = Metrics(scraped.metrics_after or "").labels("vllm:cache_config_info")
    told = [labels.get(name, "") for name in ("num_gpu_blocks", "block_size")]
    only_if(all(one.isdigit() for one in told), "cache_config_info gives no number of blocks")
    blocks, size = int(told[0]) - 1, int(told[1])
    words = len(str(earlier.request.json["prompt"]).split())  # a token each at least
    seconds = earlier.seconds * blocks * size / max(1, words)
    only_if(blocks * size <= FILLED, f"a cache of {blocks * size} tokens is not filled here")
    only_if(seconds <= PATIENCE, f"it would take {seconds:.0f} s to fill a cache of {blocks * size} tokens")
    tokens = blocks * size // STEP + 2 * TOKENS
    room = (server.max_model_len or 4096) - tokens
    only_if(room > size, f"needs a context of {tokens + size} tokens")
    number = max(CROWD, -(-blocks * size // room) + 1)
    only_if(number <= (server.max_num_seqs or 8), f"{number} requests at once would be needed to fill it")
    each = blocks // number * size - 1
    only_if(each > 1, "the cache has too few blocks")
    return [[1100 + secrets.randbelow(50) for _ in range(each)] for _ in range(number)], tokens


@exchange("memory.crowd", metrics=True)
def memory_crowd(server: Server, memory_finished: Recording, streaming_long_prompt: Recording) -> Request:
    """As many greedy completions at once as fill the cache: some are put back, and begun anew."""
    prompts, tokens = crowd(server, memory_finished, streaming_long_prompt)
    return server.completion(prompts, expect=None, **told(tokens))


@exchange("memory.crowd-again", alone=True)
def memory_crowd_again(server: Server, memory_crowd: Recording) -> Request:
    """Some of these once more, with all the room that they need."""
    body = memory_crowd.request.json
    return server.completion([body["prompt"][at] for at in AGAIN], expect=None, **told(body["max_tokens"]))


@exchange("memory.crowd-choices", alone=True)
def memory_crowd_choices(server: Server, memory_crowd: Recording, memory_crowd_again: Recording) -> Request:
    """All of them once more, two drawn choices each, streamed."""
    del memory_crowd_again
    body = memory_crowd.request.json
    streams = {"stream": True, "stream_options": {"include_usage": True}}
    return server.completion(
        body["prompt"], n=2, temperature=1.0, **streams, expect=None, **told(body["max_tokens"])
    )


def told(tokens: int) -> dict[str, Any]:
    """An answer of so many tokens, with what else was likely."""
    return {"max_tokens": tokens, "ignore_eos": True, "logprobs": 3, "return_tokens_as_token_ids": True}
