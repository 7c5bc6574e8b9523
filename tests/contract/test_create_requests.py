"""What the built-in profiles for GPUs ask of a real engine: made, inspected field by field, never started.

The image is a stand-in, for its own is tens of gigabytes; everything else is the profile's.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.launch import engine
from pytest_vllm.launch.docker import connect
from pytest_vllm.launch.recipe import recipe_for
from pytest_vllm.profile.load import load
from tests.launched.engines import IMAGE, docker_or_skip

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_vllm.launch.engine import Engine
    from pytest_vllm.launch.protocol import LaunchContext

TOKEN = "hf_" + "x" * 34


@dataclasses.dataclass(frozen=True)
class Asked:
    """What a profile's container must look like.

    Args:
        command: its last words: everything but the launcher's own host and port.
        env: entries that it must have.
        binds: where its volumes lie inside.
        ipc: whose memory segments it sees.
    """

    command: str
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)
    binds: tuple[str, ...] = ()
    ipc: str = ""


ASKED = {
    "spark-fp8": Asked(
        "vllm serve Qwen/Qwen3-32B-FP8 --download-dir /root/.cache/huggingface --max-model-len 32000 "
        "--gpu-memory-utilization 0.9 --max-num-batched-tokens 16384 --max-num-seqs 64 "
        "--enable-prefix-caching --trust-remote-code",
        {"HF_TOKEN": TOKEN, "HUGGING_FACE_HUB_TOKEN": TOKEN},
        ("/root/.cache/huggingface",),
    ),
    "spark-qwen35": Asked(
        "--model /models/qwen35 --served-model-name qwen3.5-35b --max-model-len 131072 "
        "--gpu-memory-utilization 0.85 --enable-prefix-caching --reasoning-parser qwen3 "
        "--enable-auto-tool-choice --tool-call-parser qwen3_coder --kv-cache-dtype fp8 --max-num-seqs 8 "
        "--max-num-batched-tokens 4096",
        binds=("/models/qwen35",),
        ipc="host",
    ),
    "rtx5090-qwq-awq": Asked(
        "vllm serve Qwen/QwQ-32B-AWQ --gpu-memory-utilization 0.9 --enable-prefix-caching "
        "--enable-chunked-prefill --max-model-len 32768 --enable-reasoning --reasoning-parser deepseek_r1 "
        "--enable-auto-tool-choice --tool-call-parser hermes",
        {"HUGGING_FACE_HUB_TOKEN": TOKEN, "VLLM_ATTENTION_BACKEND": "FLASHINFER"},
        ("/root/.cache",),
        ipc="host",
    ),
    "rtxpro6000-bf16": Asked(
        "--model Qwen/Qwen3-32B --served-model-name qwen3-32b --dtype bfloat16 --tensor-parallel-size 1 "
        "--max-model-len 32768 --gpu-memory-utilization 0.9 --max-num-seqs 8 --max-num-batched-tokens 32768 "
        "--enable-chunked-prefill --enable-prefix-caching --trust-remote-code",
        binds=("/root/.cache/huggingface",),
        ipc="host",
    ),
}


def _cases(kind: str, mark: pytest.MarkDecorator, *names: str) -> list[Any]:
    return [pytest.param((name, kind), marks=mark, id=f"{name}-{kind}") for name in names]


BY_DOCKER = _cases("docker", pytest.mark.docker, "spark-fp8", "spark-qwen35", "rtxpro6000-bf16")
BY_PODMAN = _cases("podman", pytest.mark.podman, "spark-qwen35", "rtx5090-qwq-awq")
by_any = pytest.mark.parametrize("inspected", [*BY_DOCKER, *BY_PODMAN], indirect=True)
by_docker = pytest.mark.parametrize("inspected", BY_DOCKER, indirect=True)
by_podman = pytest.mark.parametrize("inspected", BY_PODMAN, indirect=True)
#: The entrypoint of vLLM's own images, which a profile without a command leaves in place.
VLLM_IMAGE = {"Entrypoint": ["python3", "-m", "vllm.entrypoints.openai.api_server"]}


@pytest.fixture
def inspected(request: pytest.FixtureRequest, context: LaunchContext) -> Iterator[Inspected]:
    """The container that a profile's create call makes, as the engine describes it."""
    name, kind = request.param
    url = docker_or_skip() if kind == "docker" else request.getfixturevalue("podman_url")
    made = Inspected.of(name, connect(url), context)
    yield made
    made.container.remove(force=True, v=True)
    made.engine.client.close()


@dataclasses.dataclass
class Inspected:
    """A container that was made and not started.

    Args:
        name: the profile's.
        engine: where it is.
        container: the engine's handle.
        attrs: its inspection.
    """

    name: str
    engine: Engine
    container: Any
    attrs: Mapping[str, Any]

    @classmethod
    def of(cls, name: str, where: Engine, context: LaunchContext) -> Inspected:
        """Make it. Folders that the profile takes from the host are made below the run's."""
        home = context.folder / "home"
        tokens = {"HF_TOKEN": TOKEN, "HUGGING_FACE_HUB_TOKEN": TOKEN}
        environ = {"HOME": str(home), **tokens, **_folders(home)}
        profile = load(name, context.folder, environ=environ)
        server = profile.server.model_copy(
            update={"image": IMAGE, "volumes": [_below(home, text) for text in profile.server.volumes]}
        )
        profile = profile.model_copy(update={"server": server})
        context = dataclasses.replace(context, environ=environ)
        recipe = recipe_for(where, profile, context, VLLM_IMAGE, f"pytest-vllm-asked-{context.folder.name}")
        container = where.client.containers.create(**recipe.create)
        container.reload()
        return cls(name, where, container, container.attrs)

    @property
    def host(self) -> Mapping[str, Any]:
        """What concerns the host."""
        found: Mapping[str, Any] = self.attrs["HostConfig"]
        return found

    @property
    def env(self) -> dict[str, str]:
        """The environment."""
        return dict(entry.split("=", 1) for entry in self.attrs["Config"]["Env"])


def _folders(home: Path) -> dict[str, str]:
    (home / "qwen35").mkdir(parents=True, exist_ok=True)
    return {"QWEN35_FOLDER": str(home / "qwen35")}


def _below(home: Path, volume: str) -> str:
    source, _, inside = volume.partition(":")
    folder = home / source.lstrip("~/") if not source.startswith(str(home)) else home / "qwen35"
    folder.mkdir(parents=True, exist_ok=True)
    return f"{folder}:{inside}"


@by_any
def test_the_command_is_the_profiles_to_the_flag(inspected: Inspected) -> None:
    """And then the address inside the container."""
    config = inspected.attrs["Config"]
    words = [*(config.get("Entrypoint") or []), *(config["Cmd"] or [])]
    wanted = ASKED[inspected.name].command.split()
    at = words.index(wanted[0])

    assert words[at:] == [*wanted, "--host", "0.0.0.0", "--port", "8000"]  # noqa: S104 - inside


@by_any
def test_the_environment_has_secrets_and_settings(inspected: Inspected) -> None:
    """Secrets come from where pytest runs."""
    wanted = ASKED[inspected.name].env

    assert {name: inspected.env.get(name) for name in wanted} == wanted


@by_any
def test_the_port_is_on_the_loopback_alone(inspected: Inspected) -> None:
    """Whatever production publishes."""
    (bindings,) = inspected.host["PortBindings"].values()

    assert list(inspected.host["PortBindings"]) == ["8000/tcp"]
    assert [one["HostIp"] for one in bindings] == ["127.0.0.1"]


@by_any
def test_the_volumes_are_bound_where_the_profile_says(inspected: Inspected) -> None:
    """Each from a folder that is there."""
    inside = sorted(bind.split(":")[1] for bind in inspected.host["Binds"])

    assert inside == sorted(ASKED[inspected.name].binds)


@by_docker
def test_shared_memory(inspected: Inspected) -> None:
    """The host's, where the profile says so. Podman 4.3 gives it too, and its inspection denies it."""
    wanted = ASKED[inspected.name]
    if wanted.ipc:
        assert inspected.host["IpcMode"] == wanted.ipc
    else:
        assert inspected.host["IpcMode"] in ("private", "shareable")


@by_any
def test_nothing_restarts_it_and_the_run_can_find_it(inspected: Inspected) -> None:
    """Production's restart policy is not the gate's."""
    labels = inspected.attrs["Config"]["Labels"]

    assert inspected.host["RestartPolicy"]["Name"] in ("", "no")
    assert labels["pytest-vllm.profile"] == inspected.name
    assert labels[engine.RUN] == "contract"
    assert inspected.host["Privileged"] is False


@by_docker
def test_docker_is_asked_for_every_gpu(inspected: Inspected) -> None:
    """By its own request, on a machine without NVIDIA's runtime and without CDI."""
    if "nvidia" in inspected.engine.info.get("Runtimes", {}) or inspected.engine.info.get(
        "DiscoveredDevices"
    ):
        pytest.skip("this machine has GPUs: tests of the ladder cover the other ways")
    (request,) = inspected.host["DeviceRequests"]

    assert request["Count"] == -1
    assert request["Capabilities"] == [["gpu"]]
    assert inspected.host["LogConfig"]["Type"] == "json-file"


@by_podman
def test_podman_gets_no_labels_of_selinux(inspected: Inspected) -> None:
    """As the guide's own line says: `--security-opt=label=disable`."""
    assert "label=disable" in (inspected.host["SecurityOpt"] or [])
