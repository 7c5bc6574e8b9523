"""The same form over every endpoint: streamed, over completions, over Responses, with log probabilities."""

from __future__ import annotations

from typing import Any

from pytest_vllm import (
    MUST,
    SHOULD,
    Recording,
    Recordings,
    Server,
    check,
    need,
    not_json,
    only_if,
    unexpected,
)

from .exchanges import LIGHT
from .jsontext import cut_fault, schema_fault
from .test_schema import reasoning_in, text_in

SPEC = "openai:chat/create#response_format"
VLLM = "vllm:features/structured_outputs/"
NEEDS = ["chat", "structured-output"]
RESPONSES = ["responses", "structured-output"]
THINKING = ["chat", "structured-output", "reasoning"]


@check("structured.light.valid", MUST, spec=SPEC, needs=NEEDS)
def test_valid(structured_light: Recording) -> None:
    """A form of three fields is filled in as its schema says."""
    _judge(text_in(_choice(structured_light)), _choice(structured_light)["finish_reason"])


@check("structured.turns.valid", MUST, spec="fault:vllm-project/vllm/pull/30557", needs=NEEDS)
def test_turns_valid(structured_light_turns: Recording, structured_light: Recording) -> None:
    """A form at the end of a conversation is filled in as its schema says."""
    _judge(text_in(_choice(structured_light)), _choice(structured_light)["finish_reason"])
    only_if(structured_light_turns.status != 400, f"refused: {structured_light_turns.text[:120]}")
    _judge(text_in(_choice(structured_light_turns)), _choice(structured_light_turns)["finish_reason"])


@check("structured.stream.valid", MUST, spec=SPEC, needs=[*NEEDS, "stream"])
def test_stream_valid(structured_light_stream: Recording) -> None:
    """A streamed form is the same JSON once its pieces are joined."""
    _judge(*_joined(structured_light_stream))


@check("structured.stream.alike", SHOULD, spec=SPEC, needs=[*NEEDS, "stream"])
def test_stream_alike(structured_light: Recording, structured_light_stream: Recording) -> None:
    """Greedy, a form is filled in alike whether streamed or not."""
    whole, (streamed, _) = text_in(_choice(structured_light)), _joined(structured_light_stream)

    assert streamed == whole, f"streamed {streamed!r}, whole {whole!r}"


@check(
    "structured.completions.valid",
    MUST,
    spec="fault:vllm-project/vllm/issues/57726",
    needs=["completions", "structured-output"],
)
def test_completion(structured_light_completion: Recording) -> None:
    """A schema holds over completions as it does over chat."""
    choice = _choice(structured_light_completion)

    _judge(text_in(choice), choice["finish_reason"])


@check(
    "structured.responses.answered",
    MUST,
    spec="openai:responses",
    needs=RESPONSES,
    exchanges=["structured.light-response"],
)
def test_responses_answered(vllm_recordings: Recordings) -> None:
    """A schema over Responses is answered."""
    wrong = unexpected(vllm_recordings.of("structured.light-response"))

    assert not wrong, "; ".join(wrong)


@check("structured.responses.valid", MUST, spec="fault:vllm-project/vllm/issues/44012", needs=RESPONSES)
def test_response(structured_light_response: Recording) -> None:
    """A schema holds over Responses as it does over chat."""
    body = structured_light_response.ok
    parts = [part for item in body["output"] if item["type"] == "message" for part in item["content"]]
    text = "".join(part["text"] for part in parts if part["type"] == "output_text")

    _judge(text, "length" if body["status"] == "incomplete" else "stop")


@check("structured.logprobs", MUST, spec="openai:chat/object#choices-logprobs", needs=[*NEEDS, "logprobs"])
def test_logprobs(structured_light_logprobs: Recording, vllm_server: Server) -> None:
    """Under a schema every log probability is still a number."""
    entries = _choice(structured_light_logprobs)["logprobs"]["content"]
    values = [one["logprob"] for entry in entries for one in [entry, *entry["top_logprobs"]]]
    wrong = [value for value in values if not vllm_server.is_logprob(value)]

    assert values, "no log probabilities"
    assert not wrong, f"no log probabilities: {wrong}"


@check(
    "structured.json",
    MUST,
    spec="rfc8259:section-6",
    needs=NEEDS,
    exchanges=["structured.light", "structured.schema"],
)
def test_json(vllm_recordings: Recordings) -> None:
    """The bodies of constrained answers hold no NaN and no Infinity."""
    whole = [
        one
        for prefix in ("structured.light", "structured.schema[")
        for one in vllm_recordings.of(prefix)
        if not one.request.streams
    ]
    wrong = not_json(whole)

    assert not wrong, "; ".join(wrong)


@check("structured.thinking.valid", MUST, spec="fault:vllm-project/vllm/issues/50948", needs=THINKING)
def test_thinking_valid(structured_thinking: Recording) -> None:
    """After its reasoning a model fills in the form, in the content."""
    choice, thoughts = _choice(structured_thinking), reasoning_in(_choice(structured_thinking)).strip()
    text = text_in(choice)

    assert text or schema_fault(thoughts, LIGHT), f"the form stands in the reasoning: {thoughts[:120]!r}"
    need(text, f"the reasoning did not end: {thoughts[-120:]!r}")
    _judge(text, choice["finish_reason"])


@check("structured.thinking.kept", MUST, spec="fault:vllm-project/vllm/issues/47027", needs=THINKING)
def test_thinking_kept(structured_thinking: Recording, structured_thinking_free: Recording) -> None:
    """A schema does not take a model's reasoning away."""
    free = reasoning_in(_choice(structured_thinking_free))
    only_if(free, "the model thinks without a schema neither")
    kept = reasoning_in(_choice(structured_thinking))

    assert kept.strip(), f"reasoning without a schema: {free[:60]!r}; none with it"


def _choice(answer: Recording) -> Any:
    return answer.ok["choices"][0]


def _joined(stream: Recording) -> tuple[str, str]:
    """The content and the finish reason of a streamed choice."""
    choices = [choice for delta in stream.deltas for choice in delta.get("choices", ())]
    reasons = [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]
    return "".join(choice["delta"].get("content") or "" for choice in choices), (reasons or [""])[-1]


def _judge(text: str, reason: str) -> None:
    fault = cut_fault(text) if reason == "length" else schema_fault(text, LIGHT)

    assert not fault, fault
    need(reason != "length", f"cut by its token limit: {text[:120]!r}")
