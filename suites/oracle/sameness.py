"""Which answers must be the same."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from .answers import CHAT, COMPLETIONS
from .ties import bent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .answers import Answer
    from .apis import Choice

#: Fields that change how an answer comes, and not what it says.
OUTER = (
    "stream", "stream_options", "logprobs", "top_logprobs", "user", "request_id", "metadata", "priority",
    "return_token_ids", "return_tokens_as_token_ids", "store", "service_tier", "include",
)  # fmt: skip
#: Fields that may leave the text to chance, or that nothing promises to be the same twice.
CHANCE = ("use_beam_search", "prompt_logprobs", "cache_salt", "kv_transfer_params", "previous_response_id")


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
    """Whether answers to the same request differ and none of them lists the candidates that would say why."""
    said = {(tuple(map(words, one.choices)), end(one)) for one in group}
    listed = any(choice.tokens for one in group for choice in one.choices)
    return len(said) > 1 and not listed and not bent(group[0].asked)


def end(one: Answer) -> tuple[tuple[tuple[str, ...], ...], int]:
    """How an answer ends: the finish reasons of its choices, and the tokens that it is billed."""
    return tuple(choice.finish for choice in one.choices), one.usage[1] if one.usage else 0


def words(choice: Choice) -> tuple[str, tuple[tuple[str, str], ...]]:
    """What a choice says: its text and its calls."""
    return choice.text, choice.calls
