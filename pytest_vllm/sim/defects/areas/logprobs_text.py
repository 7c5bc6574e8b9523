"""Defects of log probabilities and token ids that do not belong to the text beside them."""

from __future__ import annotations

from typing import Any

from pytest_vllm.sim.defects.choose import in_choices
from pytest_vllm.sim.defects.make import spoil, spoil_events
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS

BOTH = (CHAT, COMPLETIONS)


def _turned(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    found = choice.get("logprobs") or {}
    (found.get("content") or []).reverse()


def _unnamed(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for entry in choice.get("prompt_logprobs") or ():
        for one in (entry or {}).values():
            one["decoded_token"] = ""


def _ids_lost(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for name in ("token_ids", "prompt_token_ids"):
        if choice.get(name):
            choice[name] = choice[name][:-1]


def _other_ids(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for name in ("token_ids", "prompt_token_ids"):
        if choice.get(name):
            choice[name] = choice[name][::-1]


def _lower(value: Any) -> Any:
    return value - 1.5 if isinstance(value, float) else value


spoil(
    "logprobs.not-given",
    "Answers come without the log probabilities that were asked for.",
    BOTH,
    "choices.*.logprobs",
    None,
    catches=["logprobs.chat.there", "logprobs.completion.there"],
)
in_choices(
    "logprobs.out-of-order",
    "The entries of a chat answer come in reverse order.",
    (CHAT,),
    _turned,
    catches=["logprobs.chat.joined"],
)
spoil_events(
    "logprobs.stream-short",
    "Streamed chunks hold their tokens without names.",
    (CHAT,),
    "choices.*.logprobs.content.*.token",
    "",
    catches=["logprobs.stream.same-tokens"],
)
spoil_events(
    "logprobs.stream-values",
    "Streamed tokens have other log probabilities than the same tokens in one piece.",
    (CHAT,),
    "choices.*.logprobs.content.*.logprob",
    _lower,
    catches=["logprobs.stream.same-values"],
)
in_choices(
    "logprobs.prompt-unnamed",
    "`prompt_logprobs` does not say which tokens it speaks of.",
    (COMPLETIONS,),
    _unnamed,
    catches=["logprobs.prompt.named"],
)
in_choices(
    "completions.ids-short",
    "Token ids lack the last one.",
    (COMPLETIONS,),
    _ids_lost,
    area="logprobs",
    catches=["completions.token-ids.counted"],
)
in_choices(
    "completions.ids-turned",
    "Token ids come in another order than the text.",
    (COMPLETIONS,),
    _other_ids,
    area="logprobs",
    catches=["completions.token-ids.prompt", "completions.token-ids.text"],
)
