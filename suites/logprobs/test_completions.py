"""Log probabilities of a completion."""

from __future__ import annotations

from typing import Any

from pytest_vllm import MUST, SHOULD, Recording, check, text_of

SPEC = "openai:completions/object#choices-logprobs"
NEEDS = ["completions", "logprobs"]
FORCED = ["completions", "logprobs", "tokenize"]


@check("logprobs.completion.count", MUST, spec=SPEC, needs=NEEDS)
def test_count(logprobs_completion: Recording) -> None:
    """Every generated token has a string, a log probability, candidates and an offset."""
    found, used = _logprobs(logprobs_completion), logprobs_completion.ok["usage"]["completion_tokens"]
    lengths = {name: len(found[name]) for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset")}

    assert set(lengths.values()) == {used}, f"{lengths} for {used} tokens"


@check("logprobs.completion.top-count", MUST, spec="openai:completions/create#logprobs", needs=NEEDS)
def test_top_count(logprobs_completion: Recording) -> None:
    """Every token has as many candidates as were asked for, or one more."""
    counts = [len(top) for top in _logprobs(logprobs_completion)["top_logprobs"]]

    assert set(counts) <= {2, 3, 4}, f"candidates for each token: {counts}, asked for 3"
    assert max(counts) >= 3, f"candidates for each token: {counts}, asked for 3"


@check("logprobs.completion.greedy-is-best", MUST, spec=SPEC, needs=NEEDS)
def test_greedy_is_best(logprobs_completion: Recording) -> None:
    """At temperature 0 no candidate is likelier than the token that was taken."""
    found = _logprobs(logprobs_completion)
    rows = list(zip(found["tokens"], found["token_logprobs"], found["top_logprobs"], strict=True))
    worse = [row for row in rows if max(row[2].values()) > row[1] + 1e-3]

    assert not worse, f"taken {worse[0][0]!r} at {worse[0][1]}, of {worse[0][2]}"


@check("logprobs.completion.joined", MUST, spec=SPEC, needs=FORCED)
def test_joined(completions_forced: Recording) -> None:
    """The token strings join to the text."""
    text = text_of(completions_forced.ok["choices"][0])
    joined = "".join(_logprobs(completions_forced)["tokens"])

    assert joined.strip() == text.strip(), f"tokens join to {joined!r}, the text is {text!r}"


@check("logprobs.completion.offsets", SHOULD, spec=SPEC, needs=FORCED)
def test_offsets(completions_forced: Recording) -> None:
    """`text_offset` says where each token begins in the text."""
    found, text = _logprobs(completions_forced), text_of(completions_forced.ok["choices"][0])
    rows = list(zip(found["tokens"], found["text_offset"], strict=True))
    wrong = [(token, at) for token, at in rows if not text.startswith(token, at)]

    assert not wrong, f"token {wrong[0][0]!r} does not stand at offset {wrong[0][1]} of {text!r}"


def _logprobs(answer: Recording) -> Any:
    return answer.ok["choices"][0]["logprobs"]
