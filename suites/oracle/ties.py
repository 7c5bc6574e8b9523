"""Where two greedy answers may differ: a real model's batches round otherwise, and a near-tie tips over.

As `pytest_vllm.near_tie`, for answers of every route, and for those whose tokens do not join to their text.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_vllm import parting

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .apis import Choice, Token

#: Nats below the likeliest candidate that count as about as likely: another batch may round so far.
TIE = 1.0
#: Nats by which the same likelihood may be written otherwise.
SAME = 1e-3
#: Fields that keep a model from its likeliest tokens: what they leave is not what log probabilities list.
BENT = (
    "structured_outputs", "response_format", "guided_json", "guided_choice", "guided_regex", "guided_grammar",
    "logit_bias", "allowed_token_ids", "bad_words", "frequency_penalty", "presence_penalty",
    "repetition_penalty", "thinking_token_budget",
)  # fmt: skip
#: Fields that keep a model from ending.
ENDLESS = ("ignore_eos", "min_tokens")
#: How tokens are written that end an answer: `</s>`, `<|im_end|>`, or not at all.
ENDING = re.compile(r"(<[^<>\s]{1,40}>)?")


def bent(asked: Mapping[str, Any]) -> bool:
    """Whether a request keeps the model from tokens that it thinks likely."""
    forced = asked.get("tool_choice") == "required" or isinstance(asked.get("tool_choice"), dict)
    return forced or any(asked.get(name) for name in BENT)


def candidates_of(choice: Choice, asked: Mapping[str, Any]) -> Choice:
    """A choice whose tokens list the candidates that the request left to the model."""
    if not any(asked.get(name) for name in ENDLESS):
        return choice
    left = [
        (token, {text: value for text, value in candidates.items() if not ENDING.fullmatch(text)})
        for token, candidates in choice.tokens
    ]
    return replace(choice, tokens=tuple(left))


def excuse(listings: Sequence[Choice], one: Choice, other: Choice) -> str:
    """Why two greedy answers to the same request may differ; empty when they may not.

    Args:
        listings: answers to the same request, with their likeliest candidates where those were asked for.
        one: the first answer.
        other: the second answer.
    """
    known = [choice for choice in listings if any(candidates for _, candidates in choice.tokens)]
    if not known:
        return "no answer to this request lists its candidates"
    if one.calls or other.calls:
        return "a near-tie" if any(ties(choice.tokens) for choice in known) else ""
    at = parting(one.text, other.text)
    alike = [choice for choice in known if choice.text[:at] == one.text[:at]]
    if not alike:
        return "every answer that lists its candidates parts from both before"
    return "a near-tie" if any(_tied_at_parting(choice, one.text, other.text) for choice in alike) else ""


def penalised(choices: Iterable[Choice]) -> bool:
    """Whether a greedy answer holds a token that is clearly not the likeliest one it lists.

    A server's own defaults do that (a `repetition_penalty` in the checkpoint's file): log probabilities are
    those before penalties, and say nothing of ties then.
    """
    return any(
        candidates.get(token, 0.0) < max(candidates.values(), default=0.0) - SAME
        for choice in choices
        for token, candidates in choice.tokens
    )


def ends_by_chance(asked: Mapping[str, Any], choices: Sequence[Choice]) -> bool:
    """Whether it was about as likely that answers with the same words end otherwise, or cost otherwise.

    What frames a call is never seen, wherever it stands, and may be spelt in several ways; what a constraint
    leaves to the model is in no list of candidates.
    """
    return (
        bent(asked)
        or penalised(choices)
        or any(ties(one.tokens if one.calls else one.tokens[-2:]) for one in choices)
    )


def _tied_at_parting(listing: Choice, one: str, other: str) -> bool:
    """Whether both texts go on, where they part or before, with candidates that are about as likely.

    Where tokens do not join to the text, because markers of reasoning or calls are hidden or a character
    has several tokens, the place is not known, and a near-tie anywhere counts.
    """
    if not listing.text.startswith("".join(token for token, _ in listing.tokens)[: len(listing.text)]):
        return ties(listing.tokens)
    at, begin = parting(one, other), 0
    for token, candidates in listing.tokens:
        if begin > at:
            return False
        tied = _tied(candidates)
        if any(
            _goes_on(one, begin, mine) and _goes_on(other, begin, theirs)
            for mine in tied
            for theirs in tied
            if mine != theirs
        ):
            return True
        begin += len(token)
    return False


def _goes_on(text: str, begin: int, token: str) -> bool:
    """Whether a text goes on with this token, or ends: what ends it has no text."""
    return text.startswith(token, begin) if begin < len(text) else True


def ties(tokens: Sequence[Token]) -> bool:
    """Whether candidates were about equally likely at any of these tokens."""
    return any(len(_tied(candidates)) > 1 for _, candidates in tokens)


def _tied(candidates: Mapping[str, float]) -> list[str]:
    best = max(candidates.values(), default=0.0)
    return [text for text, value in candidates.items() if value >= best - TIE]
