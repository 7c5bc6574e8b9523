"""Adapters that come and go while the server runs, where that is allowed."""

from pytest_vllm import MUST, Profile, Recording, check, need, only_if

from .exchanges import extra

SPEC = "vllm:features/lora/"
PATHS = "fault:vllm-project/vllm/issues/30690"
STALE = "fault:vllm-project/vllm/issues/42125"
NEEDS = ("lora",)
ALLOWED = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"


def offered(recording: Recording) -> None:
    """Go on only where adapters can be loaded at run time: elsewhere the route is not there."""
    recording.answered()
    absent = recording.status == 405 or (recording.status == 404 and '"detail"' in recording.text)
    only_if(not absent, f"{ALLOWED} is not set")


def loaded(recording: Recording) -> None:
    """Go on only where the adapter was loaded."""
    offered(recording)
    need(recording.status == 200, f"loading was answered with {recording.status}")


def names(models: Recording) -> list[str]:
    """The ids of a list of models."""
    return [str(row.get("id")) for row in models.ok.get("data") or [] if isinstance(row, dict)]


@check("lora.runtime.offered", MUST, spec="fault:Continual-Intelligence/SEAL/issues/3", needs=NEEDS)
def test_offered(vllm_profile: Profile, lora_load_nothing: Recording) -> None:
    """A profile that allows loading at run time gets a server that offers it."""
    only_if(str(vllm_profile.server.env.get(ALLOWED, "")) in ("1", "true", "True"), f"{ALLOWED} is not set")
    lora_load_nothing.answered()

    assert lora_load_nothing.status not in (404, 405), (
        f"answered with {lora_load_nothing.status}: {lora_load_nothing.text[:80]}"
    )


@check("lora.runtime.load", MUST, spec=SPEC, needs=NEEDS)
def test_load(lora_load: Recording) -> None:
    """An adapter that the server already has can be loaded under another name."""
    offered(lora_load)

    assert lora_load.status == 200, f"answered with {lora_load.status}: {lora_load.text[:120]}"


@check("lora.runtime.listed", MUST, spec=SPEC, needs=NEEDS)
def test_listed(lora_load: Recording, lora_loaded_models: Recording) -> None:
    """An adapter that was loaded is listed."""
    loaded(lora_load)

    assert extra(lora_load) in names(lora_loaded_models), f"listed are {names(lora_loaded_models)}"


@check("lora.runtime.answers", MUST, spec=SPEC, needs=("lora", "chat"))
def test_answers(lora_load: Recording, lora_loaded_chat: Recording) -> None:
    """An adapter that was loaded answers under its name."""
    loaded(lora_load)
    lora_loaded_chat.answered()
    told = lora_loaded_chat.json.get("model")

    assert (lora_loaded_chat.status, told) == (200, extra(lora_load)), (
        f"answered with {lora_loaded_chat.status} by {told!r}: {lora_loaded_chat.text[:100]}"
    )


@check("lora.runtime.gone", MUST, spec=STALE, needs=NEEDS)
def test_gone(
    lora_load: Recording,
    lora_unload: Recording,
    lora_unloaded_models: Recording,
    lora_unloaded_chat: Recording,
) -> None:
    """An adapter that was unloaded is neither listed nor served any more."""
    loaded(lora_load)
    lora_unload.answered()
    lora_unloaded_chat.answered()
    status = lora_unloaded_chat.status

    assert lora_unload.status == 200, (
        f"unloading is answered with {lora_unload.status}: {lora_unload.text[:80]}"
    )
    assert extra(lora_load) not in names(lora_unloaded_models), "it is still listed"
    assert status == 404, f"it is still served: {status}: {lora_unloaded_chat.text[:80]}"


@check("lora.runtime.bad-path", MUST, spec=PATHS, needs=NEEDS)
def test_bad_path(lora_load_nowhere: Recording) -> None:
    """A folder that does not exist is refused as the client's fault."""
    offered(lora_load_nowhere)
    status = lora_load_nowhere.status or 0

    assert 400 <= status < 500, f"answered with {status}: {lora_load_nowhere.text[:120]}"


@check("lora.runtime.nothing", MUST, spec=PATHS, needs=NEEDS)
def test_nothing(lora_load_nothing: Recording, lora_unload_unknown: Recording) -> None:
    """Loading nothing and unloading what is not there are refused with 4xx."""
    offered(lora_load_nothing)
    lora_unload_unknown.answered()
    found = {"load": lora_load_nothing.status or 0, "unload": lora_unload_unknown.status or 0}

    assert all(400 <= status < 500 for status in found.values()), f"answered with {found}"
