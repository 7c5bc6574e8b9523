"""Log probabilities where few ask for them: other scripts, many candidates, echoed streams, read twice."""

from __future__ import annotations

from typing import Any

from pytest_vllm import MUST, Recording, Server, check, need, only_if

from ..oracle.apis import TORN  # noqa: TID252 - suites lie together
from .exchanges import MOST

CHAT = "openai:chat/object#choices-logprobs"
SPEC = "openai:completions/object#choices-logprobs"
VLLM = "vllm:serving/openai_compatible_server/#completions-api"
SPELT = "fault:vllm-project/vllm/issues/19177"
MANY = "fault:vllm-project/vllm/issues/16540"
OFFSETS = "fault:vllm-project/vllm/pull/47815"
STALE = "fault:vllm-project/vllm/pull/42245"
NEEDS = ["chat", "logprobs"]
COMPLETIONS = ["completions", "logprobs"]
#: How far apart two readings of a prompt may lie, in nats; a stale value is of another prompt altogether.
APART, EXACT = 1.0, 1e-3


@check("logprobs.letters.own", MUST, spec=SPELT, needs=[*NEEDS, "structured-output"])
def test_own(logprobs_letters: Recording) -> None:
    """The tokens of a text are spelt in its own letters, whatever the script."""
    text, tokens = _text(logprobs_letters), _tokens(logprobs_letters)
    need(not text.isascii() and tokens, "the answer holds no letters of another script")
    foreign = {letter for token in tokens for letter in token if not letter.isascii()} - {*text, TORN}

    assert not foreign, f"{sorted(foreign)[:8]} stand in the tokens and not in the text {text!r}"


@check("logprobs.letters.joined", MUST, spec=CHAT, needs=[*NEEDS, "structured-output"])
def test_joined(logprobs_letters: Recording) -> None:
    """The tokens of a text in several scripts join to it."""
    text, joined = _text(logprobs_letters), "".join(_tokens(logprobs_letters))
    need(not text.isascii() and joined, "the answer holds no letters of another script")
    only_if(TORN not in joined, "parts of characters are written as such")

    assert text.strip() in joined, f"tokens join to {joined!r}, the text is {text!r}"


@check("logprobs.letters.streamed", MUST, spec=CHAT, needs=[*NEEDS, "structured-output", "stream"])
def test_streamed(logprobs_letters: Recording, logprobs_letters_stream: Recording) -> None:
    """A text in several scripts has the same tokens streamed and whole."""
    need(_text(logprobs_letters) == _text(logprobs_letters_stream), "the two answers differ")
    whole, streamed = _tokens(logprobs_letters), _tokens(logprobs_letters_stream)

    assert streamed == whole, f"streamed {streamed}, whole {whole}"


@check("logprobs.most", MUST, spec=MANY, needs=NEEDS)
def test_most(logprobs_most_chat: Recording) -> None:
    """Twenty candidates for a token of a chat are given, or refused by number."""
    if _refused(logprobs_most_chat):
        return
    counts = [len(entry["top_logprobs"]) for entry in _entries(logprobs_most_chat)]

    assert counts, "there are no candidates"
    assert min(counts) >= MOST, f"candidates for each token: {counts}, asked for {MOST}"


@check("logprobs.most-completion", MUST, spec=MANY, needs=COMPLETIONS)
def test_most_completion(logprobs_most_completion: Recording) -> None:
    """Twenty candidates for a token of a completion are given, or refused by number."""
    if _refused(logprobs_most_completion):
        return
    tops = logprobs_most_completion.ok["choices"][0]["logprobs"]["top_logprobs"]

    assert tops, "there are no candidates"
    assert all(tops), f"candidates: {[*map(len, tops)]}, asked for {MOST}"  # of one spelling some are one


@check("logprobs.echo.offsets", MUST, spec=OFFSETS, needs=[*COMPLETIONS, "stream"])
def test_offsets(vllm_server: Server, logprobs_echo_stream: Recording) -> None:
    """In an echoed stream each offset is the end of the token before."""
    only_if(vllm_server.at_least("0.26.0"), "before 0.26 offsets count from the answer's own text")
    rows = [
        row
        for delta in logprobs_echo_stream.deltas
        for choice in delta.get("choices", ())
        if (found := choice.get("logprobs"))
        for row in zip(found["tokens"], found["text_offset"], strict=True)
    ]
    need(len(rows) > 4, "the stream held no log probabilities")
    ends = [at + len(token) for token, at in rows]
    wrong = [
        f"{token!r} at {at}, the one before ends at {end}"
        for (token, at), end in zip(rows[1:], ends, strict=False)
        if at != end
    ]

    assert not wrong, "; ".join(wrong[:3])


@check("logprobs.prompt.again", MUST, spec=STALE, needs=COMPLETIONS)
def test_again(vllm_server: Server, logprobs_read: Recording, logprobs_read_again: Recording) -> None:
    """A prompt's beginning has the log probabilities that it had before."""
    first, second = _prompt(logprobs_read), _prompt(logprobs_read_again)
    need(len(first) > 3 and len(second) >= len(first), "there are no prompt log probabilities")
    bound = EXACT if vllm_server.simulated else APART
    far = [
        f"token {at}: {one:.2f}, then {other:.2f}"
        for at, (one, other) in enumerate(zip(first[:-2], second, strict=False))
        if abs(one - other) > bound
    ]

    assert not far, f"{len(far)} of {len(first) - 2} tokens: {'; '.join(far[:3])}"


def _refused(answer: Recording) -> bool:
    """Whether a server allows fewer candidates and says so; fails on any other refusal."""
    answer.answered()
    by_number = answer.status == 400 and "logprobs" in answer.text

    assert answer.status == 200 or by_number, f"answered with {answer.status}: {answer.text[:200]}"
    return by_number


def _choices(answer: Recording) -> list[dict[str, Any]]:
    return [choice for body in answer.bodies for choice in body.get("choices", ())]


def _text(answer: Recording) -> str:
    said = [choice.get("delta") or choice.get("message") or {} for choice in _choices(answer)]
    thought = any(one.get("reasoning") or one.get("reasoning_content") for one in said)
    only_if(not thought, "the model thinks first, and its reasoning is taken out of the text")
    return "".join(one.get("content") or "" for one in said)


def _entries(answer: Recording) -> list[dict[str, Any]]:
    return [
        entry for choice in _choices(answer) for entry in (choice.get("logprobs") or {}).get("content") or ()
    ]


def _tokens(answer: Recording) -> list[str]:
    return [str(entry["token"]) for entry in _entries(answer)]


def _prompt(answer: Recording) -> list[float]:
    """The log probability of each token of a prompt but the first; the token itself is the first entry."""
    rows = answer.ok["choices"][0].get("prompt_logprobs") or []
    return [next(iter(row.values()))["logprob"] for row in rows if row]
