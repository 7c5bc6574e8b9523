"""Which answers must be the same, and where a difference is excused by what the model thought likely."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_vllm import parting

from .answers import CHAT, COMPLETIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .answers import Answer
    from .apis import Choice, Token

#: Fields that change how an answer comes, and not what it says.
OUTER = (
    "stream", "stream_options", "logprobs", "top_logprobs", "user", "request_id", "metadata", "priority",
    "return_token_ids", "return_tokens_as_token_ids", "store", "service_tier", "include",
)  # fmt: skip
#: Fields that may leave the text to chance, or that nothing promises to be the same twice.
CHANCE = ("use_beam_search", "prompt_logprobs", "cache_salt", "kv_transfer_params", "previous_response_id")
#: Nats below the likeliest candidate that count as about as likely: another batch may round so far.
TIE = 1.0


def groups(said: Iterable[Answer]) -> list[list[Answer]]:
    """The answers to the same greedy request, for each that was asked more than once."""
    found: dict[str, list[Answer]] = {}
    for one in said:
        if one.path in (CHAT, COMPLETIONS) and greedy(one.asked):
            found.setdefault(spelt(one.path, one.asked), []).append(one)
    return [group for group in found.values() if len(group) > 1]


def greedy(asked: Mapping[str, Any]) -> bool:
    """Whether a request leaves nothing to chance."""
    return asked.get("temperature") == 0 and not any(asked.get(name) for name in CHANCE)


def spelt(path: str, asked: Mapping[str, Any]) -> str:
    """A request without what changes only how its answer comes; null is the same as left out."""
    kept = {name: value for name, value in asked.items() if name not in OUTER and value is not None}
    return json.dumps([path, kept], sort_keys=True)


def usual(said: Sequence[Any]) -> Any:
    """What most of them say; the first of those that are said as often."""
    return Counter(said).most_common(1)[0][0]


def unexplained(group: Sequence[Answer]) -> bool:
    """Whether answers to the same request differ and none of them lists its candidates."""
    said = {tuple(map(words, one.choices)) for one in group}
    return len(said) > 1 and not any(choice.tokens for one in group for choice in one.choices)


def words(choice: Choice) -> tuple[str, tuple[tuple[str, str], ...]]:
    """What a choice says: its text and its calls."""
    return choice.text, choice.calls


def excuse(listings: Iterable[tuple[str, Sequence[Token]]], one: str, other: str) -> str:
    """Why two greedy texts may differ; empty when they may not.

    Args:
        listings: (text, its tokens with their likeliest candidates) of answers to the same request.
        one: the first text.
        other: the second text.
    """
    at = parting(one, other)
    known = [tokens for text, tokens in listings if tokens and text[:at] == one[:at]]
    if not known:
        return "no answer to this request lists its candidates"
    verdicts = [_tie_at_parting(tokens, one, other) for tokens in known]
    return "a near-tie" if any(verdicts) else ""


def _tie_at_parting(tokens: Sequence[Token], one: str, other: str) -> bool:
    """Whether candidates were about equally likely where the texts part.

    Where the tokens do not join to the text, because markers of reasoning or calls are hidden, the place is
    not known, and a tie anywhere counts.
    """
    at = parting(one, other)
    joined, end = "".join(token for token, _ in tokens), 0
    placed = one.startswith(joined[: len(one)]) or other.startswith(joined[: len(other)])
    for token, candidates in tokens:
        end += len(token)
        if not placed and len(_tied(candidates)) > 1:
            return True
        if placed and at < end:
            return len(_tied(candidates)) > 1
    return False


def _tied(candidates: Mapping[str, float]) -> list[str]:
    best = max(candidates.values(), default=0.0)
    return [text for text, value in candidates.items() if value >= best - TIE]
