"""A field is read, its request is answered, and what it is not about stays as it was."""

from __future__ import annotations

from typing import Any

from pytest_vllm import (
    MUST,
    Case,
    Recording,
    Recordings,
    Server,
    check,
    need,
    only_if,
    schema_faults,
    server_errors,
)

from .exchanges import BARE, CHAT, COMPLETIONS, FIELDS, MESSAGES, RESPONSES

VLLM = "vllm:serving/openai_compatible_server/"
SHAPES = {
    CHAT: "chat.completion",
    COMPLETIONS: "completion",
    RESPONSES: "response",
    MESSAGES: "message",
}
#: What makes up the count of a prompt: Messages counts what a cache took part in apart from the rest.
COUNTS = ("prompt_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
SENT = ("fields.chat[", "fields.completion[", "fields.response[", "fields.message[")


def prompt_of(answer: Recording) -> int | None:
    """The tokens of the prompt as the answer counts them; None where it does not."""
    usage: dict[str, Any] = answer.ok.get("usage") or {}
    found = [usage[name] for name in COUNTS if isinstance(usage.get(name), int)]
    return sum(found) if found else None


def sent(recordings: Recordings) -> list[Recording]:
    """The answers of all routes that the server has."""
    found = [one for one in recordings.of("fields.") if one.key.startswith(SENT)]
    return [one for one in found if one.status == 200]


def faults(answer: Recording, version: str) -> list[str]:
    """In what an answer gravely departs from the shape of its route."""
    found = schema_faults(SHAPES[answer.request.path], answer.ok, version)
    return [str(fault) for fault in found if fault.level is MUST]


def refused(answer: Recording, names: list[str]) -> bool:
    """Whether a request was refused by the name of what it set: a word of it counts, as in `reasoning`."""
    words = {word for name in names for word in (name, *name.split("_")) if len(word) > 3}
    text = answer.text.lower()
    return answer.status in (400, 422) and any(word in text for word in words)


def accepted(field: Case, answer: Recording) -> None:
    """Fail unless a request was answered, or refused where a healthy server may refuse, by name."""
    answer.answered()
    names = list(field["set"])
    by_name = bool(field.get("refusable")) and refused(answer, names)

    assert answer.status == 200 or by_name, f"{names}: {answer.status} {answer.text[:200]}"


@check("fields.chat", MUST, spec=VLLM, needs=["chat"])
def test_chat(chat_field: Case, fields_chat: Recording) -> None:
    """A chat field that this version reads is accepted, or refused by its name."""
    accepted(chat_field, fields_chat)


@check("fields.completion", MUST, spec=VLLM, needs=["completions"])
def test_completion(completion_field: Case, fields_completion: Recording) -> None:
    """A completion field that this version reads is accepted, or refused by its name."""
    accepted(completion_field, fields_completion)


@check("fields.response", MUST, spec=VLLM, needs=["responses"])
def test_response(response_field: Case, fields_response: Recording) -> None:
    """A Responses field that this version reads is accepted, or refused by its name."""
    accepted(response_field, fields_response)


@check("fields.message", MUST, spec=VLLM, needs=["messages"])
def test_message(message_field: Case, fields_message: Recording) -> None:
    """A Messages field that this version reads is accepted, or refused by its name."""
    accepted(message_field, fields_message)


@check("fields.neutral", MUST, spec=VLLM, exchanges=["fields.bare["])
def test_neutral(neutral_field: Case, fields_neutral: Recording, vllm_recordings: Recordings) -> None:
    """A field at null, or at a value that asks for nothing, changes nothing."""
    fields_neutral.answered()
    path, name = neutral_field["path"], neutral_field.id
    route = path.rpartition("/v1/")[2].replace("/", "-")
    bare = vllm_recordings.get(f"fields.bare[{route}]")
    only_if(bare.status == 200, f"without it too the answer is {bare.status}")

    assert fields_neutral.status == 200, f"{name}: {fields_neutral.status} {fields_neutral.text[:200]}"
    told = prompt_of(fields_neutral), prompt_of(bare)
    assert told[0] == told[1], f"{name}: {told[0]} prompt tokens, without it {told[1]}"


@check("fields.agent", MUST, spec="fault:vllm-project/vllm/issues/44000")
def test_agent(agent: Case, fields_agent: Recording) -> None:
    """What a coding agent sends on every request is answered by a stream that ends."""
    fields_agent.rendered()
    status, text = fields_agent.status, fields_agent.text
    assert status == 200, f"{agent.id}: answered with {status}: {text[:200]}"
    names = [event.name or event.data for event in fields_agent.events]
    assert {*names[-1:]} & {*agent["ends"], "[DONE]"}, f"{agent.id}: the last event is {names[-1:]}"
    assert set(agent["ends"]) & set(names), f"{agent.id}: none of {agent['ends']} came"


@check("fields.prompt-kept", MUST, spec=VLLM, exchanges=(*SENT, "fields.bare["))
def test_prompt_kept(vllm_recordings: Recordings) -> None:
    """A field that is not about the prompt leaves the number of its tokens as it is."""
    bare = {one.request.path: prompt_of(one) for one in vllm_recordings.of("fields.bare[")}
    about = {(row["path"], *row["set"]) for row in FIELDS if row.get("prompt")}
    answers = [one for one in sent(vllm_recordings) if (one.request.path, *_set(one)) not in about]
    judged = [one for one in answers if bare.get(one.request.path)]
    need(judged, "no answer counts the tokens of its prompt")
    wrong = [
        f"{one.key}: {prompt_of(one)} tokens, without it {bare[one.request.path]}"
        for one in judged
        if prompt_of(one) != bare[one.request.path]
    ]

    assert not wrong, "; ".join(wrong[:5])


@check("fields.shape", MUST, spec=VLLM, exchanges=(*SENT, "fields.bare["))
def test_shape(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Whatever field is set, the answer has the shape of its route."""
    answers = sent(vllm_recordings)
    need(answers, "no request with a field of these was answered")
    bare = [one for one in vllm_recordings.of("fields.bare[") if one.status == 200]
    anyway = {fault for one in bare for fault in faults(one, vllm_server.version)}
    wrong = [
        f"{one.key}: {fault}"
        for one in answers
        for fault in faults(one, vllm_server.version)
        if fault not in anyway  # which is no matter of the field
    ]

    assert not wrong, "; ".join(wrong[:5])


@check("fields.served", MUST, spec="openai:chat/object", needs=["chat"], exchanges=["fields."])
def test_served(vllm_recordings: Recordings) -> None:
    """No field ends in a server error."""
    wrong = server_errors(vllm_recordings.of("fields."))

    assert not wrong, f"{len(wrong)} requests: {'; '.join(wrong[:3])}"


def _set(answer: Recording) -> list[str]:
    """What a request sets beside what each has to."""
    return [
        name
        for name in answer.request.json
        if name not in {*BARE[answer.request.path], "model", "temperature"}
    ]
