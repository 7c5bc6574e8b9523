"""A field is read, its request is answered, and what it is not about stays as it was."""

from __future__ import annotations

from typing import Any

from pytest_vllm import MUST, Case, Recording, Recordings, Server, check, need, schema_faults

from .exchanges import CHAT, COMPLETIONS, FIELDS, MESSAGES, RESPONSES

VLLM = "vllm:serving/openai_compatible_server/"
SHAPES = {
    CHAT: "chat.completion",
    COMPLETIONS: "completion",
    RESPONSES: "response",
    MESSAGES: "message",
}
SENT = "fields.sent["


def prompt_of(answer: Recording) -> int | None:
    """The tokens of the prompt as the answer counts them; None where it does not."""
    usage: dict[str, Any] = answer.ok.get("usage") or {}
    found = usage.get("prompt_tokens", usage.get("input_tokens"))
    return found if isinstance(found, int) else None


def refused(answer: Recording, names: list[str]) -> bool:
    """Whether a request was refused by the name of what it set: a word of it counts, as in `reasoning`."""
    words = {word for name in names for word in (name, *name.split("_")) if len(word) > 3}
    text = answer.text.lower()
    return answer.status in (400, 422) and any(word in text for word in words)


@check("fields.answered", MUST, spec=VLLM)
def test_answered(field: Case, fields_sent: Recording) -> None:
    """A field that this version reads is accepted, or refused by its name."""
    fields_sent.answered()
    names = list(field["set"])
    by_name = bool(field.get("refusable")) and refused(fields_sent, names)

    assert fields_sent.status == 200 or by_name, f"{names}: {fields_sent.status} {fields_sent.text[:200]}"


@check("fields.prompt-kept", MUST, spec=VLLM, exchanges=(SENT, "fields.bare["))
def test_prompt_kept(vllm_recordings: Recordings) -> None:
    """A field that is not about the prompt leaves the number of its tokens as it is."""
    bare = {one.request.path: prompt_of(one) for one in vllm_recordings.of("fields.bare[")}
    about = {f"{SENT}{row['id']}]" for row in FIELDS if row.get("prompt")}
    answers = [one for one in vllm_recordings.of(SENT) if one.status == 200 and one.key not in about]
    judged = [one for one in answers if bare.get(one.request.path)]
    need(judged, "no answer counts the tokens of its prompt")
    wrong = [
        f"{one.key}: {prompt_of(one)} tokens, without it {bare[one.request.path]}"
        for one in judged
        if prompt_of(one) != bare[one.request.path]
    ]

    assert not wrong, "; ".join(wrong[:5])


@check("fields.shape", MUST, spec=VLLM, exchanges=(SENT,))
def test_shape(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Whatever field is set, the answer has the shape of its route."""
    answers = [one for one in vllm_recordings.of(SENT) if one.status == 200]
    need(answers, "no request with a field of these was answered")
    wrong = [
        f"{one.key}: {fault}"
        for one in answers
        for fault in schema_faults(SHAPES[one.request.path], one.ok, vllm_server.version)
        if fault.level is MUST
    ]

    assert not wrong, "; ".join(wrong[:5])
