"""Defects of log probabilities: how many, in which order, of what value; requests that end in an error."""

from __future__ import annotations

from math import exp, log10
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import asks, failure, in_bytes, in_choices, refused
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

BOTH = (CHAT, COMPLETIONS)


def _entries(choice: dict[str, Any]) -> list[dict[str, Any]]:
    """Entries of a chat answer."""
    return (choice.get("logprobs") or {}).get("content") or []


def _listed(choice: dict[str, Any]) -> dict[str, Any]:
    """The parallel lists of a completion; empty when there are none."""
    found = choice.get("logprobs") or {}
    return found if "tokens" in found else {}


def _one_fewer(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    del _entries(choice)[-1:]
    for rows in _listed(choice).values():
        del rows[-1:]


def _taken_only(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for entry in _entries(choice):
        del entry["top_logprobs"][1:]
    found = _listed(choice)
    tops = found.get("top_logprobs") or []
    for top, token in zip(tops, found.get("tokens") or [], strict=True) if tops else ():
        for other in [key for key in top or () if key != token]:
            del top[other]


def _always_two(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for entry in _entries(choice):
        entry["top_logprobs"] = entry["top_logprobs"] or [dict(entry), {**entry, "logprob": -9.0}]


def _turned(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for entry in _entries(choice):
        entry["top_logprobs"].reverse()


def _better(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for entry in _entries(choice):
        entry["logprob"] -= 3.0
        for top in entry["top_logprobs"]:
            top["logprob"] -= 3.0 * (top["token"] == entry["token"])
    found = _listed(choice)
    for number, value in enumerate(found.get("token_logprobs") or ()):
        if value is not None:
            found["token_logprobs"][number] = value - 3.0


def _unlisted(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for entry in _entries(choice):
        for top in entry["top_logprobs"]:
            top["logprob"] -= 0.001


def _decimal(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for row in _values(choice):
        row["logprob"] *= log10(exp(1))


def _values(choice: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for entry in _entries(choice):
        yield from [entry, *entry["top_logprobs"]]


def _above_zero(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for row in _values(choice):
        row["logprob"] = -row["logprob"]
    found = _listed(choice)
    if found:
        found["token_logprobs"] = [None if v is None else -v for v in found["token_logprobs"]]


def _code_points(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for entry in _entries(choice):
        entry["bytes"] = [ord(char) + 1 for char in entry["token"]]


def _raw_tokens(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    found = _listed(choice)
    if found:
        found["tokens"] = [token.replace(" ", "\u0120") + "\u0120" for token in found["tokens"]]


def _offsets(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    found = _listed(choice)
    if found:
        found["text_offset"] = [at + 3 for at in found["text_offset"]]
        found["tokens"] = [token.upper() for token in found["tokens"]]


def _first_scored(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    if asked.get("echo") and _listed(choice):
        choice["logprobs"]["token_logprobs"][0] = 0.0


def _prompt_lost(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    if choice.get("prompt_logprobs"):
        choice["prompt_logprobs"] = [None]


def _prompt_shifted(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for entry in choice.get("prompt_logprobs") or ():
        for candidate in (entry or {}).values():
            candidate["logprob"] -= 1.0
    del (choice.get("prompt_logprobs") or [])[-1:]


def _echo_constant(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    if asked.get("echo") and _listed(choice):
        values = choice["logprobs"]["token_logprobs"]
        choice["logprobs"]["token_logprobs"] = [None if v is None else -0.6931 for v in values]


def _reread(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    if asked.get("echo") and isinstance(asked.get("prompt"), list) and _listed(choice):
        values = choice["logprobs"]["token_logprobs"]
        choice["logprobs"]["token_logprobs"] = [None if v is None else v - 1.4 for v in values]


def _plain(asked: dict[str, Any]) -> bool:
    return not asked.get("echo") and not asked.get("return_tokens_as_token_ids")


in_choices(
    "logprobs.one-fewer", "The last token has no entry.", BOTH, _one_fewer, catches=["logprobs.chat.count"]
)
in_choices(
    "logprobs.taken-only",
    "Only the token that was taken is listed.",
    BOTH,
    _taken_only,
    catches=["logprobs.chat.top-count", "logprobs.completion.top-count"],
)
in_choices(
    "logprobs.candidates-unasked",
    "Candidates come where none are asked for.",
    (CHAT,),
    _always_two,
    catches=["logprobs.chat.no-top"],
)
in_choices(
    "logprobs.reversed",
    "Candidates are listed worst first.",
    (CHAT,),
    _turned,
    catches=["logprobs.chat.sorted"],
)
in_choices(
    "logprobs.taken-too-low",
    "The token that was taken has the log probability of another one.",
    BOTH,
    _better,
    catches=["logprobs.chat.greedy-is-best", "logprobs.completion.greedy-is-best"],
)
in_choices(
    "logprobs.taken-differs",
    "Taken and listed, a token has two log probabilities.",
    (CHAT,),
    _unlisted,
    catches=["logprobs.chat.taken-is-listed"],
)
in_choices("logprobs.decimal", "Logarithms are decimal.", (CHAT,), _decimal, catches=["logprobs.chat.mass"])
in_choices("logprobs.positive", "Values lack their sign.", BOTH, _above_zero, catches=["logprobs.finite"])
in_choices(
    "logprobs.bytes-wrong", "`bytes` are off by one.", (CHAT,), _code_points, catches=["logprobs.chat.bytes"]
)
in_choices(
    "logprobs.raw-tokens",
    "Token strings are the vocabulary's own spelling.",
    (COMPLETIONS,),
    _raw_tokens,
    _plain,
    catches=["logprobs.completion.joined"],
)
in_choices(
    "logprobs.offsets-wrong",
    "Offsets and strings do not fit the text.",
    (COMPLETIONS,),
    _offsets,
    _plain,
    catches=["logprobs.completion.offsets"],
)
in_choices(
    "logprobs.first-scored",
    "The first token of an echoed prompt has a log probability.",
    (COMPLETIONS,),
    _first_scored,
    catches=["logprobs.echo.first-null"],
)
in_choices(
    "logprobs.prompt-lost",
    "`prompt_logprobs` is a list with one null.",
    (COMPLETIONS,),
    _prompt_lost,
    faults=["LOGPROB-003"],
    catches=["logprobs.prompt.count"],
)
in_choices(
    "logprobs.prompt-shifted",
    "`prompt_logprobs` lacks its last entry, and the others are a nat too low.",
    (COMPLETIONS,),
    _prompt_shifted,
    catches=["logprobs.prompt.count", "logprobs.prompt.agrees"],
)
in_choices(
    "logprobs.echo-constant",
    "Every token of an echoed prompt has the same log probability.",
    (COMPLETIONS,),
    _echo_constant,
    area="canary",
    catches=["logprobs.echo.varied", "canary.language"],
)
in_choices(
    "logprobs.reread-differs",
    "Read as a prompt, tokens have other log probabilities than when they were generated.",
    (COMPLETIONS,),
    _reread,
    area="canary",
    catches=["logprobs.rescored", "canary.read-again.agrees"],
)
in_bytes(
    "logprobs.nan",
    "Log probabilities are NaN.",
    BOTH,
    lambda body: body.replace(b'"logprob":-', b'"logprob":NaN,"was":-').replace(
        b'"token_logprobs":[', b'"token_logprobs":[NaN,'
    ),
    catches=["logprobs.json"],
)
refused(
    "logprobs.crashes",
    "Any request for log probabilities is a server error.",
    BOTH,
    500,
    failure("list index out of range"),
    asks("logprobs", "prompt_logprobs"),
    faults=["LOGPROB-004"],
    catches=["logprobs.answered"],
)
refused(
    "logprobs.echo-crashes",
    "Echo with log probabilities, or log probabilities of the prompt, end in a server error.",
    (COMPLETIONS,),
    500,
    failure("EngineCore encountered an issue."),
    lambda asked: (asked.get("echo") and "logprobs" in asked) or "prompt_logprobs" in asked,
    faults=["LOGPROB-001", "LOGPROB-006", "LOGPROB-008"],
    catches=["logprobs.answered"],
)
