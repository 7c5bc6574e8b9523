"""Which answers must be the same."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from .likeness import as_chat, plain
from .streamed import BEST
from .ties import bent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .answers import Answer
    from .apis import Choice

#: Fields that may leave the text to chance, or that nothing promises to be the same twice.
CHANCE = (
    "use_beam_search",
    "prompt_logprobs",
    "cache_salt",
    "kv_transfer_params",
    "previous_response_id",
    "background",
)


def groups(said: Iterable[Answer]) -> list[list[Answer]]:
    """The answers to the same greedy request over one route, for each that was asked more than once."""
    return _grouped(said, lambda one: (one.path, plain(one.asked)))


def across(said: Iterable[Answer]) -> list[list[Answer]]:
    """As `groups`, over all routes that ask the model for the same.

    Where an answer holds reasoning or calls, which each route writes in its own way, only those of one
    route are compared.
    """
    found = []
    for group in _grouped(said, lambda one: as_chat(one.path, one.asked)):
        worded = all(c.text == c.content and not c.calls for one in group for c in one.choices)
        found += [group] if worded else groups(group)
    return found


def _grouped(said: Iterable[Answer], name: Callable[[Answer], object]) -> list[list[Answer]]:
    found: dict[str, list[Answer]] = {}
    for one in said:
        if greedy(one.asked):
            found.setdefault(json.dumps(name(one), sort_keys=True), []).append(one)
    return [group for group in found.values() if len(group) > 1]


def greedy(asked: Mapping[str, Any]) -> bool:
    """Whether a request leaves nothing to chance."""
    drawn = asked.get("temperature") != 0 and not any(leaves(asked.get(n)) for n, leaves in BEST.items())
    return not drawn and not any(asked.get(name) for name in CHANCE)


def prompt(one: Answer) -> str:
    """What an answer was asked, without how: another salt, seed or limit asks for the same."""
    asked = one.asked
    return json.dumps([asked.get("system"), asked.get("messages", asked.get("prompt", asked.get("input")))])


def usual(said: Sequence[Any]) -> Any:
    """What most of them say; the first of those that are said as often."""
    return Counter(said).most_common(1)[0][0]


def unexplained(group: Sequence[Answer]) -> bool:
    """Whether answers to the same request differ and none of them lists the candidates that would say why."""
    said = {tuple(map(words, one.choices)) for one in group}
    ends = {(one.path, *end(one)) for one in group}
    differ = len(said) > 1 or len(ends) > len({one.path for one in group})
    listed = any(choice.tokens for one in group for choice in one.choices)
    return differ and not listed and not bent(group[0].asked)


def end(one: Answer) -> tuple[tuple[tuple[str, ...], ...], int]:
    """How an answer ends: the finish reasons of its choices, and the tokens that it is billed."""
    return tuple(choice.finish for choice in one.choices), one.usage[1] if one.usage else 0


def words(choice: Choice) -> tuple[str, tuple[tuple[str, str], ...]]:
    """What a choice says: its text and its calls, however their arguments are spaced."""
    return choice.text, tuple((name, _spaced(arguments)) for name, arguments in choice.calls)


def _spaced(arguments: str) -> str:
    """Arguments with the blanks that JSON usually has: a parser writes them anew, or streams the model's."""
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False)
    except ValueError:
        return arguments
