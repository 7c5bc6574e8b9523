"""The list of models."""

from __future__ import annotations

from pytest_vllm import INFO, MUST, SHOULD, Recording, Recordings, Server, check, shape_faults, unexpected

SPEC = "openai:models/list"


@check("models.answered", MUST, spec=SPEC, exchanges=["models."])
def test_answered(vllm_recordings: Recordings) -> None:
    """Every request about models gets the status it is meant to get."""
    wrong = unexpected(vllm_recordings.of("models."))

    assert not wrong, "; ".join(wrong)


@check("models.list.schema", MUST, spec=SPEC)
def test_schema(models_list: Recording, vllm_server: Server) -> None:
    """The list of models has OpenAI's shape."""
    faults = shape_faults("models", [models_list], vllm_server.version, MUST)

    assert not faults, "; ".join(faults)


@check("models.list.unknown-fields", INFO, spec=SPEC)
def test_unknown_fields(models_list: Recording, vllm_server: Server) -> None:
    """The entries hold no field that neither OpenAI nor vLLM is known to send."""
    faults = shape_faults("models", [models_list], vllm_server.version, SHOULD, INFO)

    assert not faults, "; ".join(faults)


@check("models.list.served", MUST, spec=SPEC)
def test_served(models_served: Recording) -> None:
    """A model that is listed is known to the routes that use it."""
    models_served.answered()
    name = models_served.request.json["model"]

    assert models_served.status != 404, (
        f"{name!r} is listed: {models_served.status} {models_served.text[:120]}"
    )


@check("models.list.not-empty", MUST, spec=SPEC)
def test_not_empty(models_list: Recording) -> None:
    """At least one model is listed."""
    data = models_list.ok["data"]

    assert data, "data is an empty list"


@check("models.list.unique", MUST, spec=SPEC)
def test_unique(models_list: Recording) -> None:
    """No name is listed twice, and none is empty."""
    names = [entry["id"] for entry in models_list.ok["data"]]

    assert all(names), f"an empty name among {names}"
    assert len(set(names)) == len(names), f"listed twice: {names}"


@check("models.list.stable", MUST, spec=SPEC)
def test_stable(models_list: Recording, models_again: Recording) -> None:
    """Asked twice, the server lists the same base models."""
    first, second = _bases(models_list), _bases(models_again)

    assert first == second, f"first {first}, then {second}"


@check("models.list.created", MUST, spec="openai:models/object")
def test_created(models_list: Recording) -> None:
    """`created` is in seconds since 1970."""
    created = {entry["id"]: entry["created"] for entry in models_list.ok["data"]}

    assert all(1.5e9 < at < 5e9 for at in created.values()), f"created: {created}"


@check("models.by-id", SHOULD, spec="openai:models/retrieve")
def test_by_id(models_by_id: Recording) -> None:
    """A single model's route answers with the model, or says that it is not there."""
    models_by_id.answered()
    status = models_by_id.status

    assert status in (200, 404), f"answered with {status}: {models_by_id.text[:120]}"


def _bases(listing: Recording) -> list[str]:
    """Names of the base models; adapters come and go."""
    return sorted(entry["id"] for entry in listing.ok["data"] if not entry.get("parent"))
