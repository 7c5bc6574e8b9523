"""What a request promises itself is kept in every answer of the run: choices, stop strings, a told end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_vllm import MUST, Recordings, check, listed, observe, only_if

from .answers import CHAT, COMPLETIONS, answers
from .counting import texts_of
from .test_accounts import CUT, LIMITS
from .test_texts import constrained

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .answers import Answer

SPEC = "openai:chat/create"
#: Fields beside which an answer may end at its limit by itself, or holds what would have stopped it.
BESIDE = (
    "stop", "stop_token_ids", "stop_sequences", "use_beam_search", "echo", "allowed_token_ids", "logit_bias",
    "ignore_eos", "min_tokens", "suffix", "include_stop_str_in_output",
)  # fmt: skip
#: So many answers to different prompts that all end by themselves with their last token are no chance.
SEVERAL = 3
#: What sets requests apart, in words.
TRAITS: dict[str, Callable[[Answer], bool]] = {
    "all": lambda one: True,  # noqa: ARG005 - one of several with the same arguments
    "streams": lambda one: one.streams,
    "whole answers": lambda one: not one.streams,
    "with instructions": lambda one: bool(one.asked.get("system") or one.asked.get("instructions")),
    "with several turns": lambda one: len(one.asked.get("messages") or ()) > 2,
    "with tools": lambda one: bool(one.asked.get("tools")),
    "with a seed": lambda one: one.asked.get("seed") is not None,
    "with log probabilities": lambda one: bool(one.asked.get("logprobs")),
}


@check("oracle.choices.all", MUST, spec=f"{SPEC}#n", exchanges=["*"])
def test_choices(vllm_recordings: Recordings) -> None:
    """Every answer has as many choices as were asked for."""
    asked = [one for one in answers(vllm_recordings) if one.path in (CHAT, COMPLETIONS)]
    only_if(asked, "no answer of chat or completions can be read")
    observe("answers of several choices", sum(many(one) > 1 for one in asked))
    wrong = [
        f"{one.key}: {len(one.choices)} of {many(one)}" for one in asked if len(one.choices) != many(one)
    ]

    assert not wrong, listed(wrong)


@check("oracle.stop.hidden", MUST, spec=f"{SPEC}#stop", exchanges=["oracle.stopped", "*"])
def test_hidden(vllm_recordings: Recordings) -> None:
    """No answer shows a string that was to stop it, over every route."""
    found = [(one, stops) for one in answers(vllm_recordings) if (stops := _stops(one))]
    only_if(found, "no request gave a stop string")
    wrong = [
        f"{one.key}: {stop!r} in {choice.text[-80:]!r}"
        for one, stops in found
        for choice in one.choices
        for stop in stops
        if stop in choice.text
    ]

    assert not wrong, listed(wrong)


@check("oracle.end.told", MUST, spec="openai:chat/object", exchanges=["*"])
def test_told(vllm_recordings: Recordings) -> None:
    """Answers that used up their tokens say that the limit ended them."""
    spent = [one for one in answers(vllm_recordings) if _spent(one)]
    only_if(spent, "no answer used up its tokens")
    observe("answers that used up their tokens", len(spent))
    wrong = list(dict.fromkeys(fault for fault in _untold(spent)))

    assert not wrong, listed(wrong)


def many(one: Answer) -> int:
    """How many choices a request of chat or completions asks for."""
    prompts = len(texts_of(one.asked.get("prompt")) or [""]) if one.path == COMPLETIONS else 1
    return int(one.asked.get("n") or 1) * prompts


def _stops(one: Answer) -> list[str]:
    """The strings that no text of an answer may hold."""
    asked = one.asked
    shown = ("include_stop_str_in_output", "min_tokens", "echo", "use_beam_search", "tools")
    given = asked.get("stop") or asked.get("stop_sequences") or []
    given = [given] if isinstance(given, str) else given
    return [] if any(asked.get(name) for name in shown) else [stop for stop in given if stop]


def _spent(one: Answer) -> bool:
    """Whether an answer says something, and used up its tokens."""
    limits = [one.asked[name] for name in LIMITS if isinstance(one.asked.get(name), int)]
    hollow = any(one.asked.get(name) for name in BESIDE) or one.asked.get("skip_special_tokens") is False
    alone = len(one.choices) == 1 and bool(one.choices[0].finish) and not one.choices[0].calls
    if hollow or not alone or one.usage is None or constrained(one.asked) or one.asked.get("text"):
        return False
    return bool(limits) and bool(one.text.strip()) and one.usage[1] == limits[0]


def _untold(spent: list[Answer]) -> Iterator[str]:
    """What sets apart requests of a route that never say that their limit ended them.

    A text of one token is no chance: what ends an answer shows nothing.
    """
    for one in spent:
        if one.usage and one.usage[1] == 1 and one.choices[0].finish[-1] not in CUT:
            yield f"{one.key}: {one.text[:20]!r} for the only token, and {one.choices[0].finish[-1]!r}"
    for path in dict.fromkeys(one.path for one in spent):
        for trait, has in TRAITS.items():
            like = [one for one in spent if one.path == path and has(one)]
            prompts = {
                json.dumps([one.asked.get(n) for n in ("system", "messages", "prompt", "input")])
                for one in like
            }
            if len(prompts) >= SEVERAL and not any(one.choices[0].finish[-1] in CUT for one in like):
                finish = like[0].choices[0].finish[-1]
                yield f"{path}, {trait}: none of {len(like)}, such as {like[0].key}: {finish!r}"
