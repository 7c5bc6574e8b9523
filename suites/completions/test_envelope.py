"""The envelope of a completion."""

from __future__ import annotations

from pytest_vllm import (
    INFO,
    MUST,
    SHOULD,
    Case,
    Recording,
    Recordings,
    Server,
    check,
    need,
    not_json,
    only_if,
    shape_faults,
    unexpected,
)

SPEC = "openai:completions/object"
CREATE = "openai:completions/create"
TYPE = "rfc9110:field.content-type"
HEADERS = "vllm:serving/openai_compatible_server/#extra-http-headers"
NEEDS = ["completions"]


@check("completions.answered", MUST, spec=CREATE, needs=NEEDS, exchanges=["completions."])
def test_answered(vllm_recordings: Recordings) -> None:
    """Every valid completion request is answered."""
    wrong = unexpected(vllm_recordings.of("completions."))

    assert not wrong, "; ".join(wrong)


@check("completions.schema", MUST, spec=SPEC, needs=NEEDS)
def test_schema(completions_plain: Recording, vllm_server: Server) -> None:
    """A completion has OpenAI's shape."""
    faults = shape_faults("completion", [completions_plain], vllm_server.version, MUST)

    assert not faults, "; ".join(faults)


@check("completions.unknown-fields", INFO, spec=SPEC, needs=NEEDS)
def test_unknown_fields(completions_plain: Recording, vllm_server: Server) -> None:
    """A completion holds no field that neither OpenAI nor vLLM is known to send."""
    faults = shape_faults("completion", [completions_plain], vllm_server.version, SHOULD, INFO)

    assert not faults, "; ".join(faults)


@check("completions.content-type", MUST, spec=TYPE, needs=NEEDS, exchanges=["completions."])
def test_content_type(vllm_recordings: Recordings) -> None:
    """Completions and refusals are marked as JSON."""
    answers = [one for one in vllm_recordings.of("completions.") if one.status is not None]
    wrong = {
        one.key: one.header("content-type") for one in answers if "json" not in one.header("content-type")
    }

    assert not wrong, f"content-type: {wrong}"


@check("completions.json", MUST, spec="rfc8259:section-2", needs=NEEDS, exchanges=["completions."])
def test_json(vllm_recordings: Recordings) -> None:
    """Every completion is JSON in UTF-8, without NaN or Infinity."""
    wrong = not_json(vllm_recordings.of("completions."))

    assert not wrong, "; ".join(wrong)


@check("completions.choices.one", MUST, spec=SPEC, needs=NEEDS)
def test_one_choice(completions_plain: Recording) -> None:
    """Unless more are asked for there is one choice, number zero."""
    indices = [choice["index"] for choice in completions_plain.ok["choices"]]

    assert indices == [0], f"indices {indices}"


@check("completions.created", MUST, spec=SPEC, needs=NEEDS)
def test_created(completions_plain: Recording) -> None:
    """`created` is in seconds since 1970."""
    created = completions_plain.ok["created"]

    assert 1.5e9 < created < 5e9, f"created is {created}"


@check("completions.id.unique", MUST, spec=SPEC, needs=NEEDS, exchanges=["completions."])
def test_id_unique(vllm_recordings: Recordings) -> None:
    """No two completions share an id."""
    mine = [one for one in vllm_recordings.of("completions.") if "X-Request-Id" not in one.request.headers]
    ids = [one.json["id"] for one in mine if one.status == 200]
    need(len(ids) > 1, f"only {len(ids)} completions were answered")
    twice = sorted({one for one in ids if ids.count(one) > 1})

    assert not twice, f"ids of more than one completion: {twice}"


@check(
    "completions.id.twins",
    MUST,
    spec="fault:vllm-project/vllm/issues/15041",
    needs=["completions", "tokenize"],
)
def test_twins(twin: Case, completions_twin: Recording, completions_forced: Recording) -> None:
    """Two requests at once that bring one id are each answered or refused."""
    completions_twin.answered()
    need(
        completions_forced.status == 200, f"one token that is allowed fails too: {completions_forced.status}"
    )
    only_if(completions_twin.status not in (400, 409), f"refused: {completions_twin.text[:120]}")
    assert completions_twin.status == 200, (
        f"{twin.id}: {completions_twin.status} {completions_twin.text[:160]}"
    )
    right = {f"token_id:{one}" for one in completions_twin.request.json["allowed_token_ids"]}
    listed = completions_twin.ok["choices"][0].get("logprobs") or {}
    wrong = set(listed.get("tokens") or ()) - right

    assert not wrong, f"{twin.id}: {sorted(wrong)[:3]}, only {sorted(right)} was allowed"
    used, asked = (
        completions_twin.ok["usage"]["completion_tokens"],
        completions_twin.request.json["max_tokens"],
    )
    assert used == asked, f"{twin.id}: {used} tokens of {asked}"


@check("completions.id.request-id", SHOULD, spec=HEADERS, needs=NEEDS)
def test_request_id(completions_request_id: Recording) -> None:
    """A request's `X-Request-Id` is part of its completion's id."""
    sent, got = completions_request_id.request.headers["X-Request-Id"], completions_request_id.ok["id"]

    assert str(sent) in got, f"X-Request-Id {sent!r}, id {got!r}"


@check("completions.model", MUST, spec=SPEC, needs=NEEDS)
def test_model(completions_request_id: Recording, models_list: Recording) -> None:
    """The last listed name is served, and answered by a name of the same model."""
    asked, named = completions_request_id.request.json["model"], completions_request_id.ok["model"]
    roots = {entry["id"]: entry.get("root") for entry in models_list.ok["data"]}
    same = [name for name, root in roots.items() if name == asked or root == roots.get(asked)]

    assert named in same, f"asked {asked!r}, answered as {named!r}; listed: {sorted(roots)}"


@check("completions.logprobs.unasked", MUST, spec="openai:completions/create#logprobs", needs=NEEDS)
def test_logprobs_unasked(completions_plain: Recording) -> None:
    """No log probabilities are sent that were not asked for."""
    logprobs = completions_plain.ok["choices"][0].get("logprobs")

    assert logprobs is None, f"logprobs: {str(logprobs)[:120]}"
