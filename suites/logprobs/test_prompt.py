"""Log probabilities of the prompt itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, SHOULD, Recording, Recordings, Server, check, need, not_json, only_if

if TYPE_CHECKING:
    from collections.abc import Iterator

SPEC = "openai:completions/create#echo"
VLLM = "vllm:serving/openai_compatible_server/#completions-api"
NEEDS = ["completions", "logprobs"]


@check("logprobs.echo.count", MUST, spec="fault:vllm-project/vllm/issues/5890", needs=NEEDS)
def test_echo_count(logprobs_echo: Recording) -> None:
    """Echo gives an entry for every token of the prompt and of the answer."""
    found, used = _echoed(logprobs_echo), logprobs_echo.ok["usage"]["total_tokens"]
    lengths = {name: len(found[name]) for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset")}

    assert set(lengths.values()) == {used}, f"{lengths} for {used} tokens"


@check("logprobs.echo.first-null", MUST, spec=SPEC, needs=NEEDS)
def test_echo_first_null(logprobs_echo: Recording) -> None:
    """Every echoed token but the first has a log probability."""
    values = _echoed(logprobs_echo)["token_logprobs"]

    assert values[0] is None, f"the first token has log probability {values[0]}"
    assert None not in values[1:], f"null at token {values[1:].index(None) + 1} of {len(values)}"


@check("logprobs.echo.varied", MUST, spec="fault:vllm-project/vllm/issues/52938", needs=NEEDS)
def test_echo_varied(logprobs_echo: Recording) -> None:
    """Different tokens have different log probabilities."""
    values = _echoed(logprobs_echo)["token_logprobs"][1:]
    need(len(values) > 2, f"the prompt has only {len(values)} scored tokens")

    assert len(set(values)) > 1, f"{len(values)} tokens, all with log probability {values[0]}"


@check("logprobs.echo.sampled", MUST, spec="fault:vllm-project/vllm/issues/10234", needs=NEEDS)
def test_echo_sampled(logprobs_sampled: Recording) -> None:
    """Echo, log probabilities and narrow sampling go together."""
    found, used = _echoed(logprobs_sampled), logprobs_sampled.ok["usage"]["total_tokens"]

    assert len(found["tokens"]) == used, f"{len(found['tokens'])} entries for {used} tokens"


@check("logprobs.prompt.count", MUST, spec=VLLM, needs=NEEDS)
def test_prompt_count(logprobs_prompt: Recording) -> None:
    """`prompt_logprobs` has an entry for every prompt token, the first one null."""
    found = logprobs_prompt.ok["choices"][0].get("prompt_logprobs")
    used = logprobs_prompt.ok["usage"]["prompt_tokens"]

    assert isinstance(found, list), f"prompt_logprobs is {found!r}"
    assert len(found) == used, f"{len(found)} entries for {used} prompt tokens"
    assert found[0] is None, f"the first entry is {found[0]}"
    assert all(found[1:]), f"an empty entry among {found[1:]}"


@check("logprobs.prompt.agrees", SHOULD, spec=VLLM, needs=NEEDS)
def test_prompt_agrees(logprobs_prompt: Recording, logprobs_echo: Recording) -> None:
    """`prompt_logprobs` and echo give a prompt the same log probabilities."""
    echoed = _echoed(logprobs_echo)["token_logprobs"]
    rows = list(zip(logprobs_prompt.ok["choices"][0]["prompt_logprobs"], echoed, strict=False))[1:]
    far = [(entry, value) for entry, value in rows if not any(abs(p - value) < 0.2 for p in _values(entry))]

    assert not far, f"echo says {far[0][1]}, prompt_logprobs {far[0][0]}"


@check("logprobs.rescored", SHOULD, spec=VLLM, needs=NEEDS)
def test_rescored(logprobs_completion: Recording, logprobs_rescored: Recording, vllm_server: Server) -> None:
    """A generated text has the same log probabilities when read again as a prompt."""
    only_if(vllm_server.at_least("0.10.2"), "return_token_ids came with vLLM 0.10.2")
    generated = _echoed(logprobs_completion)["token_logprobs"]
    prompt = logprobs_rescored.request.json["prompt"]
    need(isinstance(prompt, list), "the server gives no token ids to read again")
    again = _echoed(logprobs_rescored)["token_logprobs"][: len(prompt)][-len(generated) :]
    apart = sum(abs(one - other) for one, other in zip(generated, again, strict=True)) / len(generated)

    assert apart < 0.25, f"{apart:.2f} nats apart on average: generated {generated}, read again {again}"


@check("logprobs.finite", MUST, spec="openai:chat/object", needs=NEEDS, exchanges=["logprobs."])
def test_finite(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """Every log probability is a number, and none is above zero."""
    found = {one.key: [v for body in one.bodies for v in _all(body)] for one in _scored(vllm_recordings)}
    wrong = {
        key: odd
        for key, values in found.items()
        if (odd := [v for v in values if not (v > -1e6 and vllm_server.is_logprob(v))])
    }

    assert any(found.values()), "no log probabilities in any answer"
    assert not wrong, f"no log probabilities: {wrong}"


@check("logprobs.json", MUST, spec="rfc8259:section-6", needs=NEEDS, exchanges=["logprobs."])
def test_json(vllm_recordings: Recordings) -> None:
    """Answers with log probabilities hold no NaN and no Infinity."""
    wrong = not_json(one for one in _scored(vllm_recordings) if not one.request.streams)

    assert not wrong, "; ".join(wrong)


def _scored(recordings: Recordings) -> list[Recording]:
    asked = [one for one in recordings.of("logprobs.") if one.request.path.startswith("/v1/")]
    # those without an expectation may be refused
    return [one for one in asked if one.request.expect is not None or one.status != 400]


def _echoed(answer: Recording) -> Any:
    return answer.ok["choices"][0]["logprobs"]


def _values(entry: Any) -> list[float]:
    return [candidate["logprob"] for candidate in entry.values()]


def _all(body: Any) -> Iterator[float]:
    """Every number that is a log probability, wherever it stands in the answer."""
    for choice in body["choices"]:
        found = choice.get("logprobs") or {}
        yield from (value for value in found.get("token_logprobs") or [] if value is not None)
        for top in found.get("top_logprobs") or []:
            yield from (top or {}).values()
        for entry in found.get("content") or []:
            yield from (one["logprob"] for one in [entry, *entry["top_logprobs"]])
        for entry in choice.get("prompt_logprobs") or []:
            yield from _values(entry or {})
