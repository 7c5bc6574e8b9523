"""Requests of the cache suite: one prompt again and again, with scrapes around each.

All run alone and one after the other: cold, another prompt, the same again twice, changed early, salted.
The prompt begins with a random piece, so that a server that already served a run has not seen it.
"""

import secrets
from typing import Any

from pytest_vllm import Case, Metrics, Recording, Request, Server, cases, exchange, only_if

#: Tokens that any vocabulary of 1,200 entries has and that are neither bytes nor special tokens.
FIRST, LAST = 1100, 1150
TOKENS = 6
#: Tokens of answers that are compared: what the cache holds may be wrong later in a text only.
COMPARED = 24
#: Blocks that a repeated prompt fills, and what is left over for none.
BLOCKS, REST = 3, 5
#: The block size that prompts are made for when the server tells none, and the largest one worth trying.
USUAL, LARGEST = 16, 256

cache_round = cases("cache_round", [{"id": name} for name in ("one", "two", "three", "four")])


def block_size(scrape: str) -> int | None:
    """Tokens per block as `cache_config_info` tells it; None when it tells none."""
    labels = Metrics(scrape).labels("vllm:cache_config_info")
    told = labels.get("effective_attention_block_size", "")
    told = told if told.isdigit() else labels.get("block_size", "")
    return int(told) if told.isdigit() and int(told) else None


def fresh(length: int) -> list[int]:
    """So many tokens that were never sent before."""
    return [FIRST + secrets.randbelow(LAST - FIRST) for _ in range(length)]


def asked(server: Server, prompt: list[int], tokens: int = TOKENS, **params: Any) -> Request:
    """A short greedy completion of these tokens, with what else was likely."""
    scores = {"logprobs": 3, "return_tokens_as_token_ids": True} if server.can("logprobs") else {}
    return server.completion(prompt, max_tokens=tokens, ignore_eos=True, **scores, **params)


def compared(server: Server, prompt: list[int], **params: Any) -> Request:
    """The same, longer where the context has room."""
    room = (server.max_model_len or 4096) - len(prompt)
    return asked(server, prompt, COMPARED if room >= COMPARED else TOKENS, **params)


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
    return compared(server, fresh(BLOCKS * size + REST))


@exchange("cache.other", metrics=True)
def cache_other(server: Server, cache_cold: Recording) -> Request:
    """Another prompt of that length: two conversations take turns."""
    return asked(server, fresh(len(prompt_of(cache_cold))))


@exchange("cache.warm", metrics=True)
def cache_warm(server: Server, cache_cold: Recording, cache_other: Recording) -> Request:
    """The first prompt again."""
    del cache_other
    return compared(server, prompt_of(cache_cold))


@exchange("cache.again", metrics=True)
def cache_again(server: Server, cache_warm: Recording) -> Request:
    """And once more."""
    return compared(server, prompt_of(cache_warm))


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
    return compared(server, prompt_of(cache_again))


# What follows counts by `cached_tokens` of the usage, so that it needs no idle server and runs beside others.

#: Lengths of a prompt in blocks and tokens more, and the blocks that are found when it is sent again: the
#: last token has to be computed, so a block counts once a token follows it.
cache_rung = cases(
    "cache_rung",
    [
        {"id": "block-less-one", "blocks": 1, "more": -1, "found": 0},
        {"id": "block", "blocks": 1, "more": 0, "found": 0},
        {"id": "block-and-one", "blocks": 1, "more": 1, "found": 1},
        {"id": "two-blocks", "blocks": 2, "more": 0, "found": 1},
        {"id": "two-and-one", "blocks": 2, "more": 1, "found": 2},
    ],
)
cache_agent = cases("cache_agent", [{"id": "one"}, {"id": "two"}])
#: What a tool brings back to an agent, in tokens.
BROUGHT = 21


def size_of(config: Recording) -> int:
    """Tokens per block that prompts are made for."""
    return min(block_size(config.text) or USUAL, LARGEST)


def answered(recording: Recording) -> list[int]:
    """The token ids of an answer, as its log probabilities name them."""
    given = (recording.ok["choices"][0].get("logprobs") or {}).get("tokens") or []
    ids = [str(token).removeprefix("token_id:") for token in given]
    return [int(one) for one in ids if one.isdigit()]


@exchange("cache.rung-cold")
def cache_rung_cold(server: Server, cache_config: Recording, cache_rung: Case) -> Request:
    """A prompt of about so many blocks that was never sent before."""
    return asked(server, fresh(cache_rung["blocks"] * size_of(cache_config) + cache_rung["more"]))


@exchange("cache.rung-warm")
def cache_rung_warm(server: Server, cache_rung_cold: Recording) -> Request:
    """And again."""
    return asked(server, prompt_of(cache_rung_cold))


@exchange("cache.turn-first")
def cache_turn_first(server: Server, cache_config: Recording, cache_agent: Case) -> Request:
    """The first turn of an agent, so long that the answer fills its third block."""
    del cache_agent
    return asked(server, fresh(3 * size_of(cache_config) - TOKENS // 2))


@exchange("cache.turn-second")
def cache_turn_second(server: Server, cache_turn_first: Recording) -> Request:
    """Its second turn: the first one, the answer, and what a tool brought."""
    return asked(server, [*prompt_of(cache_turn_first), *answered(cache_turn_first), *fresh(BROUGHT)])


@exchange("cache.turn-third")
def cache_turn_third(server: Server, cache_turn_second: Recording) -> Request:
    """Its third turn."""
    return asked(server, [*prompt_of(cache_turn_second), *answered(cache_turn_second), *fresh(BROUGHT)])


@exchange("cache.edited")
def cache_edited(server: Server, cache_config: Recording, cache_turn_first: Recording) -> Request:
    """The first turn again, a token of its second block another one."""
    prompt, at = prompt_of(cache_turn_first), size_of(cache_config) + 1
    return asked(server, [*prompt[:at], LAST + prompt[at] - FIRST + 1, *prompt[at + 1 :]])


@exchange("cache.stopped", alone=True)
def cache_stopped(server: Server, cache_again: Recording) -> Request:
    """A prompt that is in the cache, its answer ended by a stop string: what it began with before."""
    said = str(cache_again.ok["choices"][0]["text"]).strip()
    only_if(said, "its answer holds no text")
    return compared(server, prompt_of(cache_again), stop=[said[:2]])


@exchange("cache.after-stop", alone=True)
def cache_after_stop(server: Server, cache_stopped: Recording) -> Request:
    """The same prompt without a stop string."""
    return compared(server, prompt_of(cache_stopped))


#: Tokens that a server reads in one step by default, and the most for which a prompt of several is asked.
STEP, MOST = 2048, 8192


@exchange("cache.steps-begin")
def cache_steps_begin(server: Server) -> Request:
    """A long prompt that was never sent before, and is read in one step."""
    told = str(server.args.get("max-num-batched-tokens") or STEP)
    step = int(told) if told.isdigit() else STEP
    only_if(step <= MOST, f"a prompt of more than {step} tokens is not sent here")
    longest = step // 8 * 10 + COMPARED
    only_if((server.max_model_len or 0) >= longest, f"needs a context of {longest} tokens")
    return server.completion(fresh(step // 8 * 7), max_tokens=1)


@exchange("cache.steps-warm")
def cache_steps_warm(server: Server, cache_steps_begin: Recording) -> Request:
    """The same with more behind it: the cache has the beginning, and the rest is read in one step too."""
    prompt = prompt_of(cache_steps_begin)
    return compared(server, [*prompt, *fresh(len(prompt) // 7 * 3)])


@exchange("cache.steps-cold")
def cache_steps_cold(server: Server, cache_steps_warm: Recording) -> Request:
    """The whole prompt under a salt of its own: nothing of it is found, it is read in several steps."""
    only_if(server.at_least("0.10.0"), "before 0.10 a completion takes no `cache_salt`")
    return compared(server, prompt_of(cache_steps_warm), cache_salt=secrets.token_hex(8))
