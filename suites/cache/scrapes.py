"""How this suite reads what an exchange did to the prefix cache."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_vllm import Metrics, need, only_if

from .exchanges import LARGEST, block_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm import Recording, Recordings, Server

HITS = ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total")
BILLED = re.compile(r'"total_tokens":\s*(\d+)')
RATE = "vllm:gpu_prefix_cache_hit_rate"
NEEDS = ("metrics", "completions", "prefix-cache")


@cache
def _parsed(text: str) -> Metrics:
    return Metrics(text)


def grown(recording: Recording, names: Sequence[str]) -> int:
    """How much a counter grew. Raises Undecided where that cannot be known."""
    need(recording.status == 200, f"{recording.key} was answered with {recording.status or recording.error}")
    need(recording.metrics_before and recording.metrics_after, "the metrics were not scraped")
    before, after = _parsed(recording.metrics_before or ""), _parsed(recording.metrics_after or "")
    need(not before.fault and not after.fault, f"the metrics cannot be read: {before.fault or after.fault}")
    known = [name for name in names if after.value(name) is not None]
    only_if(known or after.value(RATE) is None, "before 0.8.0 /metrics gives a hit rate and no counts")
    need(known, f"{names[0]} is not there")
    return round(after.delta(before, known[0]) or 0.0)


def hits(recording: Recording) -> int:
    """Prompt tokens that an exchange found in the cache."""
    return grown(recording, HITS)


def length(recording: Recording) -> int:
    """Tokens of the prompt that was sent."""
    return len(recording.request.json["prompt"])


def block(config: Recording) -> int:
    """Tokens per block, where prefixes are found block by block, and by one engine.

    Of several each has a cache of its own, and a request goes to the one with the least to do.
    """
    count = engines(config)
    only_if(count <= 1, f"{count} engines have a prefix cache each, and a request goes to any of them")
    size = block_size(config.text) or 0
    need(size, "cache_config_info gives no block size")
    only_if(size <= LARGEST, f"blocks of {size} tokens, as on hybrid models, where other rules hold")
    return size


def engines(scraped: Recording) -> int:
    """How many engines the metrics name (`--data-parallel-size`)."""
    told = _parsed(scraped.text).named("vllm:num_requests_running")
    return len({sample.labels.get("engine", "") for sample in told})


def capacity(config: Recording) -> int:
    """Tokens that the whole cache holds; 0 when that is not told."""
    blocks = _parsed(config.text).labels("vllm:cache_config_info").get("num_gpu_blocks", "")
    return int(blocks) * block(config) if blocks.isdigit() else 0


def between(recordings: Recordings, before: Recording, now: Recording) -> int:
    """Tokens that other requests may have put into the cache between two, which then leave too little room.

    A block that nobody uses any more is given to whoever needs one, the end of a prompt first.
    """
    since, until = before.sent, now.sent + now.seconds
    beside = [one for one in recordings.of("") if one.sent < until and one.sent + one.seconds > since]
    return sum(_tokens(one) for one in beside if one.key not in (before.key, now.key))


def undisturbed(recordings: Recordings, config: Recording, before: Recording, now: Recording) -> None:
    """Raise NotRun where a small cache had to let go of a prompt for what ran between and beside the two."""
    room, others = capacity(config), between(recordings, before, now)
    only_if(
        not room or others <= room - length(before) - length(now),
        f"the cache holds {room} tokens, of which others may have taken {others} meanwhile",
    )


def _tokens(one: Recording) -> int:
    """What an exchange may have taken of the cache: what it was billed, else a token per character."""
    asked = one.request.json
    if one.status != 200 or not isinstance(asked, dict):
        return 0
    billed = BILLED.findall(one.text)
    return max(map(int, billed)) if billed else len(str(asked)) + int(asked.get("max_tokens") or 0)


def findable(tokens: int, size: int, server: Server) -> tuple[int, ...]:
    """How many tokens of a prompt that was computed before a request finds.

    All full blocks but for the last token, which has to be computed; a drafting model may cost one more.
    """
    whole = (tokens - 1) // size * size
    return (whole, max(whole - size, 0)) if server.drafts else (whole,)


def cached_tokens(recording: Recording) -> int:
    """What the usage says was cached. Raises Undecided when it says nothing."""
    details: Mapping[str, Any] = recording.ok["usage"].get("prompt_tokens_details") or {}
    need(details.get("cached_tokens") is not None, "the usage reports no cached tokens")
    return int(details["cached_tokens"])


def text(recording: Recording) -> str:
    """The tokens of an answer, as text."""
    return "".join(entry["token"] for entry in entries(recording))


def entries(recording: Recording) -> list[dict[str, Any]]:
    """The answer's tokens with what else was likely, in the shape of a chat answer."""
    given = recording.ok["choices"][0].get("logprobs") or {}
    need(given.get("tokens") and given.get("top_logprobs"), "the answer has no log probabilities")
    return [
        {
            "token": f"<{token}>",
            "top_logprobs": [
                {"token": f"<{name}>", "logprob": value} for name, value in (tops or {}).items()
            ],
        }
        for token, tops in zip(given["tokens"], given["top_logprobs"], strict=True)
    ]
