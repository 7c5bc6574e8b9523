"""The envelope of a chat completion."""

from __future__ import annotations

from pytest_vllm import (
    INFO,
    MUST,
    SHOULD,
    Recording,
    Recordings,
    Server,
    check,
    need,
    not_json,
    observe,
    shape_faults,
    unexpected,
)

SPEC = "openai:chat/object"
CHAT = ["chat"]
HEADERS = "vllm:serving/openai_compatible_server/#extra-http-headers"


@check("chat.answered", MUST, spec="openai:chat/create", needs=CHAT, exchanges=["chat."])
def test_answered(vllm_recordings: Recordings) -> None:
    """Every valid chat request is answered."""
    wrong = unexpected(vllm_recordings.of("chat."))

    assert not wrong, "; ".join(wrong)


@check("chat.schema", MUST, spec=SPEC, needs=CHAT)
def test_schema(chat_plain: Recording, vllm_server: Server) -> None:
    """A chat answer has OpenAI's shape."""
    faults = shape_faults("chat.completion", [chat_plain], vllm_server.version, MUST)

    assert not faults, "; ".join(faults)


@check("chat.schema-advised", SHOULD, spec=SPEC, needs=CHAT)
def test_schema_advised(chat_plain: Recording, vllm_server: Server) -> None:
    """A chat answer has every field that OpenAI always sends."""
    faults = shape_faults("chat.completion", [chat_plain], vllm_server.version, SHOULD)

    assert not faults, "; ".join(faults)


@check("chat.unknown-fields", INFO, spec=SPEC, needs=CHAT)
def test_unknown_fields(chat_plain: Recording, vllm_server: Server) -> None:
    """A chat answer holds no field that neither OpenAI nor vLLM is known to send."""
    faults = shape_faults("chat.completion", [chat_plain], vllm_server.version, INFO)

    assert not faults, "; ".join(faults)


@check("chat.created", MUST, spec=SPEC, needs=CHAT)
def test_created(chat_plain: Recording) -> None:
    """`created` is in seconds since 1970."""
    created = chat_plain.ok["created"]

    assert 1.5e9 < created < 5e9, f"created is {created}"


@check("chat.content-type", MUST, spec="rfc9110:field.content-type", needs=CHAT, exchanges=["chat."])
def test_content_type(vllm_recordings: Recordings) -> None:
    """Answers and refusals are marked as JSON."""
    answers = [one for one in vllm_recordings.of("chat.") if one.status is not None]
    wrong = {
        one.key: one.header("content-type") for one in answers if "json" not in one.header("content-type")
    }

    assert not wrong, f"content-type: {wrong}"


@check("chat.json", MUST, spec="rfc8259:section-2", needs=CHAT, exchanges=["chat."])
def test_json(vllm_recordings: Recordings) -> None:
    """Every answer is JSON in UTF-8, without NaN or Infinity."""
    wrong = not_json(vllm_recordings.of("chat."))

    assert not wrong, "; ".join(wrong)


@check("chat.choices.one", MUST, spec=SPEC, needs=CHAT)
def test_one_choice(chat_plain: Recording) -> None:
    """Unless more are asked for there is one choice, number zero."""
    indices = [choice["index"] for choice in chat_plain.ok["choices"]]

    assert indices == [0], f"indices {indices}"


@check("chat.model", MUST, spec=SPEC, needs=CHAT)
def test_model(chat_plain: Recording, models_list: Recording) -> None:
    """The answer names the model that was asked, or another name of it."""
    asked, named = chat_plain.request.json["model"], chat_plain.ok["model"]
    roots = {entry["id"]: entry.get("root") for entry in models_list.ok["data"]}
    same = [name for name, root in roots.items() if name == asked or root == roots.get(asked)]

    assert named in same, f"asked {asked!r}, answered as {named!r}; listed: {sorted(roots)}"


@check("chat.id.unique", MUST, spec=SPEC, needs=CHAT, exchanges=["chat."])
def test_id_unique(vllm_recordings: Recordings) -> None:
    """No two answers share an id."""
    ids = [one.json["id"] for one in vllm_recordings.of("chat.") if one.status == 200]
    need(len(ids) > 1, f"only {len(ids)} chat requests were answered")
    twice = sorted({one for one in ids if ids.count(one) > 1})

    assert not twice, f"ids of more than one answer: {twice}"


@check("chat.id.request-id", SHOULD, spec=HEADERS, needs=CHAT)
def test_request_id(chat_request_id: Recording) -> None:
    """A request's `X-Request-Id` is part of its answer's id."""
    sent, got = chat_request_id.request.headers["X-Request-Id"], chat_request_id.ok["id"]

    assert str(sent) in got, f"X-Request-Id {sent!r}, id {got!r}"


@check("chat.fingerprint", INFO, spec=SPEC, needs=CHAT, exchanges=["chat."])
def test_fingerprint(vllm_recordings: Recordings) -> None:
    """All answers carry one fingerprint of the server."""
    found = {one.json.get("system_fingerprint") for one in vllm_recordings.of("chat.") if one.status == 200}
    observe("system_fingerprint", ", ".join(map(str, found)))

    assert len(found) == 1, f"fingerprints: {found}"
