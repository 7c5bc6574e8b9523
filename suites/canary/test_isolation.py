"""Requests that are computed together stay apart."""

from __future__ import annotations

from typing import Any

from pytest_vllm import (
    CAPABILITY,
    MUST,
    SHOULD,
    Recording,
    Recordings,
    check,
    error_in,
    need,
    text_of,
    unexpected,
)

MIXED = "fault:vllm-project/vllm/issues/9910"
BATCHED = "fault:vllm-project/vllm/issues/27034"
COMPLETIONS = ["completions", "logprobs"]
CHATS = ["canary.needle", "canary.question", "canary.story"]

#: Nats per token that batching may cost on average; kernels for other batch sizes round otherwise.
DRIFT = 0.5


@check("canary.answered", MUST, spec="openai:chat/create", needs=["chat"], exchanges=CHATS)
def test_answered(vllm_recordings: Recordings) -> None:
    """Many questions at once, beside a long prompt, are all answered."""
    wrong = unexpected(one for prefix in CHATS for one in vllm_recordings.of(prefix))

    assert not wrong, "; ".join(wrong)


@check("canary.long", MUST, spec="fault:vllm-project/vllm/issues/24662", needs=["completions", "tokenize"])
def test_long(canary_long_stream: Recording) -> None:
    """A prompt that fills more than half the context is answered beside short ones."""
    length, answer = len(canary_long_stream.request.json["prompt"]), canary_long_stream

    assert answer.status == 200, (
        f"a prompt of {length} tokens: {answer.status or answer.error}: {answer.text[:200]}"
    )
    broken = [error for part in answer.bodies if (error := error_in(part))]
    assert not broken, f"a prompt of {length} tokens: {str(broken[0])[:200]}"


@check("canary.needle.foreign", MUST, spec=MIXED, needs=["chat"], exchanges=["canary.needle"])
def test_foreign(vllm_recordings: Recordings) -> None:
    """No answer holds the code of another request."""
    answers = _answers(vllm_recordings)
    codes = {key: _code_of(key) for key in answers}
    foreign = {
        key: [code for other, code in codes.items() if other != key and code in text]
        for key, text in answers.items()
    }
    wrong = {key: found for key, found in foreign.items() if found}

    assert not wrong, f"codes of other requests: {wrong}"


@check(
    "canary.needle.own", SHOULD, spec=MIXED, family=CAPABILITY, needs=["chat"], exchanges=["canary.needle"]
)
def test_own(vllm_recordings: Recordings) -> None:
    """At least half of the answers repeat the code that they were given."""
    answers = _answers(vllm_recordings)
    own = [key for key, text in answers.items() if _code_of(key) in text]

    assert 2 * len(own) >= len(answers), f"{len(own)} of {len(answers)} answers hold their code"


@check("canary.batch.prompts", MUST, spec=MIXED, needs=COMPLETIONS, exchanges=["canary.scored["])
def test_prompts(vllm_recordings: Recordings) -> None:
    """Of several scored prompts at once, each answer scores its own."""
    scored = [one for one in vllm_recordings.of("canary.scored[") if one.status == 200]
    need(scored, "no scored prompt was answered")
    read = {one.key: "".join(_logprobs(one)["tokens"]) for one in scored}
    wrong = {key: text for key, text in read.items() if _code_of(key) not in text}

    assert not wrong, f"the code of the prompt is missing: {wrong}"


@check(
    "canary.batch.numbers",
    MUST,
    spec=BATCHED,
    needs=COMPLETIONS,
    exchanges=["canary.scored[", "canary.scored-alone["],
)
def test_numbers(vllm_recordings: Recordings) -> None:
    """A prompt has the same log probabilities alone and in a batch, but for rounding."""
    pairs = [
        (one, vllm_recordings.get(one.key.replace("scored[", "scored-alone[")))
        for one in vllm_recordings.of("canary.scored[")
    ]
    judged = [(batched, alone) for batched, alone in pairs if batched.status == 200 == alone.status]
    need(judged, "no prompt was answered both alone and in a batch")
    apart = {batched.key: _apart(_scores(batched), _scores(alone)) for batched, alone in judged}
    wrong = {key: round(nats, 2) for key, nats in apart.items() if nats > DRIFT}

    assert not wrong, f"nats per token between batch and alone: {wrong}"


@check("canary.batch.masks", MUST, spec=MIXED, needs=["completions", "tokenize"], exchanges=["canary.masked"])
def test_masks(vllm_recordings: Recordings) -> None:
    """Of several requests with one allowed token each, every one gets its own."""
    masked = [one for one in vllm_recordings.of("canary.masked") if one.status == 200]
    need(masked, "no request was answered")
    given = {one.key: set(_logprobs(one)["tokens"]) for one in masked}
    allowed = {one.key: f"token_id:{one.request.json['allowed_token_ids'][0]}" for one in masked}
    wrong = {key: sorted(tokens) for key, tokens in given.items() if tokens != {allowed[key]}}

    assert not wrong, f"tokens that were not allowed: {wrong}"


def _answers(recordings: Recordings) -> dict[str, str]:
    """Text of every needle request that was answered."""
    answered = [one for one in recordings.of("canary.needle[") if one.status == 200]
    need(answered, "no request was answered")
    return {one.key: text_of(one.json["choices"][0]) for one in answered}


def _code_of(key: str) -> str:
    """The code that the request of a key was given."""
    return key.partition("[")[2].rstrip("]").upper()


def _logprobs(answer: Recording) -> Any:
    return answer.ok["choices"][0]["logprobs"]


def _scores(answer: Recording) -> list[float]:
    """Log probabilities of the prompt's tokens but the first."""
    values = _logprobs(answer)["token_logprobs"][: answer.ok["usage"]["prompt_tokens"]]
    return [value for value in values if value is not None]


def _apart(one: list[float], other: list[float]) -> float:
    pairs = list(zip(one, other, strict=False))
    return sum(abs(a - b) for a, b in pairs) / max(1, len(pairs))
