"""Sampling parameters have an effect: none of them is silently ignored."""

from __future__ import annotations

from typing import Any

from pytest_vllm import MUST, SHOULD, Case, Recording, check, need, parting, text_of

CREATE = "openai:completions/create"
VLLM = "vllm:serving/openai_compatible_server/#completions-api"
NEEDS = ["completions"]
FORCED = ["completions", "tokenize"]


@check("completions.allowed-token-ids", MUST, spec=VLLM, needs=FORCED)
def test_allowed(completions_forced: Recording) -> None:
    """Where one token is allowed, nothing else is generated."""
    tokens = _tokens(completions_forced)

    assert len(set(tokens)) == 1, f"one token id is allowed, generated were {tokens}"


@check("completions.logit-bias", MUST, spec=f"{CREATE}#logit_bias", needs=FORCED)
def test_logit_bias(completions_bias_to_first: Recording, completions_bias_to_second: Recording) -> None:
    """A bias of 100 decides between two tokens, or is refused by name."""
    completions_bias_to_first.answered()
    if completions_bias_to_first.status == 400:
        said = completions_bias_to_first.text
        assert "logit_bias" in said, f"refused: {said[:200]}"
        return
    first, second = _tokens(completions_bias_to_first), _tokens(completions_bias_to_second)

    assert len(set(first)) == 1, f"biased to one token, generated were {first}"
    assert len(set(second)) == 1, f"biased to one token, generated were {second}"
    assert first != second, f"biased either way, generated were {first}"


@check("completions.frequency-penalty", SHOULD, spec=f"{CREATE}#frequency_penalty", needs=FORCED)
def test_frequency_penalty(completions_pair: Recording, completions_frequency_penalty: Recording) -> None:
    """A frequency penalty of 2 breaks the repetition of one token."""
    plain, penalised = _tokens(completions_pair), _tokens(completions_frequency_penalty)
    need(len(set(plain)) == 1, f"without a penalty nothing is repeated: {plain}")

    assert len(set(penalised)) == 2, f"still one token of two: {penalised}"


@check("completions.narrowing", SHOULD, spec=VLLM, needs=NEEDS)
def test_narrowing(narrowing: Case, completions_plain: Recording, completions_narrowed: Recording) -> None:
    """A high temperature changes nothing where only the best token is left to choose."""
    greedy, hot = (text_of(one.ok["choices"][0]) for one in (completions_plain, completions_narrowed))

    assert hot == greedy, f"{hot!r} at temperature 2 with {narrowing['params']}, {greedy!r} at temperature 0"


@check("completions.narrowing-refused", MUST, spec="fault:vllm-project/vllm/issues/42744", needs=NEEDS)
def test_narrowing_refused(narrowing: Case, completions_narrowed: Recording) -> None:
    """A sampling parameter is taken, or refused by name."""
    completions_narrowed.answered()
    status, (name,) = completions_narrowed.status, narrowing["params"]
    by_name = status == 400 and name in completions_narrowed.text

    assert status == 200 or by_name, f"{name}: {status} {completions_narrowed.text[:200]}"


@check("completions.seed.repeats", MUST, spec=f"{CREATE}#seed", needs=NEEDS)
def test_seed_repeats(completions_seed_first: Recording, completions_seed_again: Recording) -> None:
    """The same seed draws the same first tokens."""
    first, again = _tokens(completions_seed_first), _tokens(completions_seed_again)

    assert again[:2] == first[:2], f"seed 17 drew {first}, then {again}"


@check("completions.seed.repeats-throughout", SHOULD, spec=f"{CREATE}#seed", needs=NEEDS)
def test_seed_throughout(completions_seed_first: Recording, completions_seed_again: Recording) -> None:
    """The same seed, alone on the server, gives the same text."""
    first, again = (text_of(one.ok["choices"][0]) for one in (completions_seed_first, completions_seed_again))
    same = parting(first, again)

    assert first == again, f"after {first[:same]!r}: {first[same:]!r}, then {again[same:]!r}"


@check("completions.seed.matters", MUST, spec=f"{CREATE}#seed", needs=NEEDS)
def test_seed_matters(completions_seed_first: Recording, completions_seed_other: Recording) -> None:
    """At temperature 2 another seed gives another text."""
    first, other = _tokens(completions_seed_first), _tokens(completions_seed_other)

    assert first != other, f"seeds 17 and 18 drew the same {first}"


@check("completions.special-tokens.hidden", MUST, spec=VLLM, needs=FORCED)
def test_special_hidden(completions_special_hidden: Recording, completions_special_shown: Recording) -> None:
    """A special token is no part of the text unless it is asked for."""
    hidden, shown = _text(completions_special_hidden), _text(completions_special_shown)

    assert not _marked(hidden), f"{hidden!r} with skip_special_tokens, {shown!r} without"


@check("completions.special-tokens.shown", SHOULD, spec=VLLM, needs=FORCED)
def test_special_shown(completions_special_hidden: Recording, completions_special_shown: Recording) -> None:
    """`skip_special_tokens: false` puts special tokens into the text."""
    hidden, shown = _text(completions_special_hidden), _text(completions_special_shown)

    assert len(shown) > len(hidden), f"{shown!r} without skip_special_tokens, {hidden!r} with"


def _marked(text: str) -> bool:
    """Whether a text is written like a special token: `<|im_start|>`, `<s>`, `[INST]`."""
    return text.strip().startswith(("<", "[")) and text.strip().endswith((">", "]"))


def _text(answer: Recording) -> str:
    return text_of(answer.ok["choices"][0])


def _tokens(answer: Recording) -> list[Any]:
    found: list[Any] = answer.ok["choices"][0]["logprobs"]["tokens"]
    return found
