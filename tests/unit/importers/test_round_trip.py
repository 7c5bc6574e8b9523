"""Every built-in profile, written down in every way and read again, is itself but for documented losses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.facts import flags, versions
from pytest_vllm.profile.errors import ProfileError
from pytest_vllm.profile.exporters import KINDS, exported
from pytest_vllm.profile.importers import imported
from pytest_vllm.profile.importers.vllmline import flag_of, takes_several
from pytest_vllm.profile.load import load, names
from pytest_vllm.profile.model import Profile, Secret, ServerPart

if TYPE_CHECKING:
    from collections.abc import Mapping

NOWHERE = Path(__file__).parent
ENVIRON = {"HOME": "~"}
PROFILES = [known.name for known in names(NOWHERE)]
CONTAINERS = ("compose", "docker-run", "podman-run", "k8s")


def built_in(name: str) -> Profile:
    """A built-in profile."""
    return load(name, NOWHERE, environ=ENVIRON)


def expected(server: ServerPart, kind: str) -> dict[str, Any]:
    """The server as docs/importing.md says that it comes back: the table of losses, in code."""
    left = server.model_dump() | {"version": None, "url": None, "side_by_side": False, "scripted": False}
    engine = server.launcher in ("docker", "podman")
    launchers = {
        "serve": "process",
        "podman-run": "podman",
        "systemd": server.launcher if engine else "process",
    }
    left["launcher"] = launchers.get(kind, "docker")
    if left["launcher"] == "process":
        left |= {"image": None, "gpus": None, "volumes": [], "shm": None, "ipc": None}
        left["command"] = None if server.command == ["vllm", "serve"] else server.command
        if kind == "systemd":
            left["env"] = {
                k: {"from_env": k, "optional": False} if isinstance(v, Secret) else v
                for k, v in server.env.items()
            }
    else:
        left["args"] = {k: v for k, v in server.args.items() if k not in ("host", "port")}
    if kind == "podman-run" and isinstance(server.gpus, str):
        left["gpus"] = [f"nvidia.com/gpu={server.gpus}"]
    if kind == "k8s":
        left["gpus"] = 1 if server.gpus is not None else None
        left["shm"] = server.shm.removesuffix("b") if server.shm else None
    return left


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROFILES)
def test_what_goes_out_comes_back(name: str, kind: str) -> None:
    """Server part, to the value."""
    profile = built_in(name)
    if profile.server.image is None and (kind in CONTAINERS):
        with pytest.raises(ProfileError, match=f"profile '{name}' has no image, which {kind} needs"):
            exported(profile, kind)
        return
    written = exported(profile, kind)
    read = imported(written.text, environ=ENVIRON).profile

    assert read.server.model_dump() == expected(profile.server, kind)


@pytest.mark.parametrize("name", PROFILES)
def test_the_way_it_was_written_down_keeps_production(name: str) -> None:
    """Exported as its own kind, a deployment comes back whole."""
    profile = built_in(name)
    kind = {"systemd-user": "systemd"}.get(profile.deployment.kind or "", profile.deployment.kind or "")
    if kind not in KINDS:
        return
    read = imported(exported(profile, kind).text, environ=ENVIRON).profile.deployment
    known = profile.deployment
    ports = () if kind == "systemd" or known.network == "host" else tuple(known.ports)

    assert (read.kind, read.restart, read.network) == (known.kind, known.restart, known.network)
    assert (read.security_opt, read.remove, read.service) == (known.security_opt, known.remove, known.service)
    assert tuple(read.ports) == ports


def test_losses_are_said() -> None:
    """What a kind cannot say is in the notes, in the terms of the profile."""
    profile = built_in("rtxpro6000-bf16")

    assert exported(profile, "serve").notes == (
        "image, gpus, volumes, ipc: a command line of vLLM cannot say it",
    )
    assert exported(profile, "docker-run").notes == (
        "host and port: the container listens on 8000, published as 11437:8000",
    )
    assert exported(profile, "k8s").notes[1:] == (
        "gpus: Kubernetes counts GPUs and does not name them; 'all' became 1",
    )
    assert "PassEnvironment passes secrets on" in exported(built_in("rtxpro6000-systemd"), "systemd").notes[1]


def test_unknown_kind() -> None:
    """The near one is offered."""
    with pytest.raises(ProfileError) as caught:
        exported(built_in("spark-fp8"), "docker")

    assert str(caught.value) == (
        "unknown kind 'docker'; did you mean 'docker-run'? "
        "(one of compose, docker-run, podman-run, systemd, k8s, serve)"
    )


AWKWARD: Mapping[str, Any] = {
    "chat-template": 'it\'s a $HOME of "quotes", 100 % {{ x }}',
    "hf-overrides": {"rope_scaling": {"type": "yarn", "factor": 4.0}, "note": "a b $c"},
    "lora-modules": ["a=/x y/z", {"name": "b", "path": "/b"}],
    "enable-chunked-prefill": False,
    "middleware": ["one.Two", "three.four"],
    "allowed-origins": ["https://a.example"],
    "max-model-len": "32k",
    "hf-token": {"from-env": "HF_TOKEN"},
}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "systemd"])
def test_awkward_values_survive(kind: str) -> None:
    """Quotes, dollars, percents, JSON, lists, switches that are off, references among the flags."""
    server = {"image": "vllm/vllm-openai:v0.32.0", "model": "a/b", "args": dict(AWKWARD)}
    server |= {"api-key": {"from-env": "KEY_OF_MINE"}, "env": {"A": "x $y 'z' \"q\"", "B": ""}}
    profile = Profile.model_validate({"server": server}).model_copy(update={"name": "awkward"})
    read = imported(exported(profile, kind).text, environ=ENVIRON).profile.server

    assert read.args == AWKWARD
    assert read.env == profile.server.env
    assert read.api_key == Secret(from_env="KEY_OF_MINE")


def test_awkward_values_survive_systemd() -> None:
    """The unit's own quoting: percent signs and dollars doubled."""
    args = {key: value for key, value in AWKWARD.items() if key != "hf-token"}
    server = {"launcher": "process", "model": "a/b", "args": args, "env": {"A": "x 100 % 'z'"}}
    profile = Profile.model_validate({"server": server}).model_copy(update={"name": "awkward"})
    read = imported(exported(profile, "systemd").text, environ=ENVIRON).profile.server

    assert read.args == args
    assert read.env == profile.server.env


@pytest.mark.parametrize("kind", ["compose", "docker-run", "podman-run", "k8s"])
def test_a_port_of_its_own(kind: str) -> None:
    """The container listens where its published port leads, whatever the gate publishes for itself."""
    line = "docker run -p 9000:9001 vllm/vllm-openai --model a/b --host 0.0.0.0 --port 9001"
    profile = imported(line, environ=ENVIRON).profile
    written = exported(profile, kind).text

    assert profile.server.args == {}
    assert profile.deployment.ports == ["9000:9001"]
    assert "--port" in written
    assert "9001" in written
    assert imported(written, environ=ENVIRON).profile.server.args == {}


def test_a_port_that_nothing_publishes() -> None:
    """It is said; on the host's own network it stays."""
    line = "docker run {} vllm/vllm-openai --model a/b --port 9001"
    lost = imported(line.format("--name x"), environ=ENVIRON)

    assert lost.notes == ("the text:1: --port 9001 is left out: the gate publishes a free port",)
    assert lost.profile.server.args == {}
    assert imported(line.format("--network host"), environ=ENVIRON).profile.server.args == {"port": 9001}


def sample(name: str) -> Any:
    """A value that a flag takes, awkward where it can be."""
    known = flag_of(name)
    assert known is not None
    if takes_several(name):
        return ["a=b", "c d"]
    if known.type in ("bool", "bool-value"):
        return not known.negatable
    if known.choices:
        return int(known.choices[-1]) if str(known.choices[-1]).isdigit() else known.choices[-1]
    values = {"int": 7, "float": 0.25, "str": "it's 50 % of $HOME"}
    return {"key": "a $b", "list": [1, 2]} if known.type.startswith("json") else values.get(known.type, "x")


@pytest.mark.parametrize("kind", KINDS)
def test_every_flag_of_every_version_survives(kind: str) -> None:
    """Each with its own type; those that a profile says elsewhere are left out."""
    elsewhere = {"model", "served-model-name", "host", "port", "api-key", "hf-token"}
    args = {name: sample(name) for version in versions() for name in flags(version) if name not in elsewhere}
    server = {"image": "vllm/vllm-openai:v0.32.0", "model": "a/b", "args": args}
    profile = Profile.model_validate({"server": server}).model_copy(update={"name": "all"})

    assert len(args) > 300
    assert imported(exported(profile, kind).text, environ=ENVIRON).profile.server.args == args
