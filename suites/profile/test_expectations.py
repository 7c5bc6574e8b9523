"""What the profile expects of the deployment."""

from pytest_vllm import ENVIRONMENT, MUST, Profile, Recording, Recordings, Server, check, observe, only_if

EXPECT = "profile:expect"
SERVER = "profile:server.args"


@check("profile.capabilities.present", MUST, spec=EXPECT, family=ENVIRONMENT)
def test_expected_capabilities(vllm_profile: Profile, vllm_server: Server) -> None:
    """The server has every capability that the profile expects."""
    missing = [name for name in vllm_profile.expect.capabilities if not vllm_server.can(name)]
    known = [vllm_server.capabilities[name].how for name in missing if name in vllm_server.capabilities]

    hint = "; a key was given or expected, and the server answers without it" if "auth" in missing else ""

    assert not missing, f"missing: {', '.join(missing)} ({'; '.join(known) or 'not probed'}){hint}"


@check("profile.version.expected", MUST, spec=EXPECT, family=ENVIRONMENT, needs=["version"])
def test_expected_version(vllm_profile: Profile, profile_version: Recording) -> None:
    """The server runs the vLLM version that the profile names."""
    running = profile_version.ok["version"]
    observe("version", running)
    expected = vllm_profile.expect.version
    only_if(expected, "the profile names no version")

    assert running.split("+")[0] == str(expected).split("+")[0], f"runs {running}, not {expected}"


@check("profile.model.served", MUST, spec=SERVER, family=ENVIRONMENT)
def test_model_served(vllm_server: Server, profile_models: Recording) -> None:
    """The model of the profile is in the list of served models."""
    ids = [entry["id"] for entry in profile_models.ok["data"]]

    assert vllm_server.model in ids, f"{vllm_server.model} is not among {ids}"


@check("profile.model.context-length", MUST, spec=SERVER, family=ENVIRONMENT)
def test_context_length(vllm_server: Server, profile_models: Recording) -> None:
    """The served context is as long as --max-model-len asks for."""
    asked = vllm_server.args.get("max-model-len")
    only_if(isinstance(asked, int), "the profile sets no max-model-len in plain tokens")
    served = {entry["id"]: entry.get("max_model_len") for entry in profile_models.ok["data"]}

    told = served.get(vllm_server.model)
    assert told == asked, f"{told} tokens, {asked} asked for"


@check(
    "profile.server.stays-up",
    MUST,
    spec="vllm:serving/",
    family=ENVIRONMENT,
    exchanges=("profile.still-there",),
)
def test_stays_up(vllm_death: str, vllm_recordings: Recordings) -> None:
    """The server still answers once every other exchange was recorded."""
    assert not vllm_death, vllm_death
    last = vllm_recordings.get("profile.still-there")

    assert last.status == 200, f"the last request was answered with {last.status or last.error}"
