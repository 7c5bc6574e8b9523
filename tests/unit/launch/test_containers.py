"""What a container is made of: GPUs, entrypoint, volumes, labels, the pull of its image."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.launch.container import exit_of
from pytest_vllm.launch.engine import Engine, identify, words_of
from pytest_vllm.launch.gpus import GpuRequest, gpu_request, proven
from pytest_vllm.launch.protocol import BootError, Exit, LaunchContext
from pytest_vllm.launch.pull import PullProgress, pull
from pytest_vllm.launch.recipe import recipe_for, start_of, volume_of
from pytest_vllm.profile.model import Profile, ServerPart

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTEXT = LaunchContext("run", Path("/nowhere"), 1, environ={"HOME": "/home/me"}, scope="run-1")


def engine(name: str = "docker", version: tuple[int, ...] = (28, 2), **info: Any) -> Engine:
    """An engine that says this of itself."""
    return Engine(name, version, "unix:///run/x.sock", None, lambda: info, (OSError,), FileNotFoundError)


def recipe(image: dict[str, Any] | None = None, name: str = "docker", **server: Any) -> Any:
    """For a profile with these entries."""
    profile = Profile(name="p", server=ServerPart.model_validate({"model": "m", "image": "i:1", **server}))
    return recipe_for(engine(name), profile, CONTEXT, image or {}, "pytest-vllm-abc")


CDI = [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}]
NVIDIA = {"nvidia": {"path": "nvidia-container-runtime"}}


@pytest.mark.parametrize(
    ("info", "how"),
    [
        ({"DiscoveredDevices": CDI, "Runtimes": NVIDIA}, "cdi"),
        ({"DiscoveredDevices": [], "Runtimes": NVIDIA}, "runtime nvidia"),
        ({"Runtimes": NVIDIA}, "runtime nvidia"),
        ({"Runtimes": {"runc": {}}}, "device request"),
        ({}, "device request"),
    ],
)
def test_ladder(info: dict[str, Any], how: str) -> None:
    """The first way that the engine offers."""
    request = gpu_request(engine(**info), "all")

    assert request is not None
    assert request.how == how


def test_cdi_specification_on_disk(tmp_path: Path) -> None:
    """Engines before 28 name the folders and not the devices."""
    (tmp_path / "nvidia.yaml").write_text("kind: nvidia.com/gpu\n")
    request = gpu_request(engine(CDISpecDirs=[str(tmp_path)], Runtimes=NVIDIA), "all")
    (tmp_path / "nvidia.yaml").write_text("kind: vendor.com/net\n")
    other = gpu_request(engine(CDISpecDirs=[str(tmp_path)], Runtimes=NVIDIA), "all")

    assert request is not None
    assert request.how == "cdi"
    assert other is not None
    assert other.how == "runtime nvidia"


@pytest.mark.parametrize(
    ("gpus", "names", "number"),
    [
        ("all", ["nvidia.com/gpu=all"], None),
        (2, ["nvidia.com/gpu=0", "nvidia.com/gpu=1"], 2),
        (-1, ["nvidia.com/gpu=all"], None),
        ("1,3", ["nvidia.com/gpu=1", "nvidia.com/gpu=3"], 2),
        ("device=1", ["nvidia.com/gpu=1"], 1),
        (["GPU-8f6c"], ["nvidia.com/gpu=GPU-8f6c"], 1),
        ("nvidia.com/gpu=all", ["nvidia.com/gpu=all"], 1),
    ],
)
def test_cdi_names(gpus: Any, names: list[str], number: int | None) -> None:
    """Podman always takes CDI names."""
    request = gpu_request(engine("podman"), gpus)

    assert request is not None
    assert request.create == {"device_requests": [{"driver": "cdi", "device_ids": names}]}
    assert request.count == number


def test_other_ways_name_the_same_gpus() -> None:
    """By environment for the runtime, by ids for Docker's own request."""
    runtime = gpu_request(engine(Runtimes=NVIDIA), "0,2")
    request = gpu_request(engine(), "0,2")
    everything = gpu_request(engine(), "all")

    assert runtime is not None
    assert runtime.env["NVIDIA_VISIBLE_DEVICES"] == "0,2"
    assert request is not None
    assert request.create["device_requests"] == [{"capabilities": [["gpu"]], "device_ids": ["0", "2"]}]
    assert everything is not None
    assert everything.create["device_requests"] == [{"capabilities": [["gpu"]], "count": -1}]


@pytest.mark.parametrize("gpus", [None, 0, "", "none", []])
def test_no_gpu(gpus: Any) -> None:
    """Nothing is asked for."""
    assert gpu_request(engine(), gpus) is None


@dataclass
class Inside:
    """A container in which a command gives this."""

    status: int = 0
    output: bytes = b""
    running: bool = True
    refusal: Exception | None = None
    attrs: dict[str, Any] = field(default_factory=dict)

    def exec_run(self, command: list[str]) -> tuple[int, bytes]:
        """Run the proof."""
        assert command[0] == "sh"
        if self.refusal:
            raise self.refusal
        return self.status, self.output

    def reload(self) -> None:
        """Look again."""
        self.attrs = {"State": {"Running": self.running}}


TWO = b"GPU 0: NVIDIA H100 (UUID: GPU-1)\nGPU 1: NVIDIA H100 (UUID: GPU-2)\n"


def test_gpus_seen_inside_are_told() -> None:
    """One line each."""
    assert len(proven(Inside(output=TWO), engine(), GpuRequest("cdi", {}, count=2))) == 2


def test_too_few_gpus_inside() -> None:
    """Two came, four were asked for."""
    with pytest.raises(BootError, match="4 GPUs asked for by cdi, 2 inside the container"):
        proven(Inside(output=TWO), engine(), GpuRequest("cdi", {}, count=4))


def test_dropped_request_of_an_old_podman() -> None:
    """The version that drops it silently is named."""
    with pytest.raises(BootError, match="GPUs asked for by cdi, none inside") as caught:
        proven(Inside(status=2), engine("podman", (4, 3, 1)), GpuRequest("cdi", {}))

    assert caught.value.means.startswith("podman 4.3.1 silently drops GPU requests")


def test_container_that_died_meanwhile_is_explained_by_its_log() -> None:
    """Not by a missing GPU."""
    gone = Inside(running=False, refusal=OSError("container is not running"))

    assert proven(gone, engine(), GpuRequest("cdi", {})) == []


@pytest.mark.parametrize(
    ("image", "server", "expected"),
    [
        (["vllm", "serve"], {}, (None, [])),
        (["/opt/vllm", "serve"], {}, (None, ["vllm", "serve"])),
        (["python3", "-m", "vllm.entrypoints.openai.api_server"], {}, (None, [])),
        ([], {}, (None, ["vllm", "serve"])),
        (["/opt/nvidia/nvidia_entrypoint.sh"], {}, (None, ["vllm", "serve"])),
        (["/opt/nvidia/nvidia_entrypoint.sh"], {"command": ["python", "x"]}, (None, ["python", "x"])),
        (["vllm", "serve"], {"command": ["python", "x"]}, (["python"], ["x"])),
        ([], {"entrypoint": ["nice"], "command": ["vllm", "serve"]}, (["nice"], ["vllm", "serve"])),
        (["vllm", "serve"], {"entrypoint": [], "command": ["python", "x"]}, (["python"], ["x"])),
    ],
)
def test_start_of(
    image: list[str], server: dict[str, Any], expected: tuple[list[str] | None, list[str]]
) -> None:
    """What the image starts by itself is not started twice."""
    assert start_of(ServerPart.model_validate(server), image) == expected


def test_arguments_follow_what_starts() -> None:
    """A module gets the model by name, `vllm serve` by position."""
    serve = recipe({"Entrypoint": ["vllm", "serve"]}).create
    module = recipe({"Entrypoint": ["python3", "-m", "vllm.entrypoints.openai.api_server"]}).create
    bare = recipe().create

    assert serve["command"] == ["m", "--host", "0.0.0.0", "--port", "8000"]  # noqa: S104 - inside
    assert module["command"][:2] == ["--model", "m"]
    assert bare["command"][:3] == ["vllm", "serve", "m"]


def test_port_is_published_on_the_loopback() -> None:
    """A free one, or the profile's."""
    assert recipe().create["ports"] == {"8000/tcp": ("127.0.0.1", None)}
    assert recipe(args={"port": 8080}).create["ports"] == {"8000/tcp": ("127.0.0.1", 8080)}


def test_shared_memory() -> None:
    """With the host's there is no size to set, and podman refuses one: it is left out and told."""
    sized = recipe(shm="10g")
    shared = recipe(name="podman", shm="10g", ipc="host")

    assert sized.create["shm_size"] == "10g"
    assert sized.notes == ()
    assert "shm_size" not in shared.create
    assert shared.create["ipc_mode"] == "host"
    assert len(shared.notes) == 1


def test_labels_name_run_and_owner() -> None:
    """And whether it is meant to stay."""
    labels = recipe().create["labels"]

    assert labels["pytest-vllm.run"] == "run"
    assert labels["pytest-vllm.scope"] == "run-1"
    assert labels["pytest-vllm.owner-pid"] == "1"
    assert "pytest-vllm.keep" not in labels


def test_volumes(tmp_path: Path) -> None:
    """Home and relative folders are made absolute, names are left, what is missing is refused."""
    (tmp_path / "models").mkdir()
    environ = {"HOME": str(tmp_path)}

    assert volume_of("~/models:/models:ro", engine(), environ) == f"{tmp_path}/models:/models:ro"
    assert volume_of("cache:/root/.cache", engine(), environ) == "cache:/root/.cache"
    with pytest.raises(BootError, match="is not there"):
        volume_of("~/none:/models", engine(), environ)
    with pytest.raises(BootError, match="names no place inside"):
        volume_of("/models", engine(), environ)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            {"Components": [{"Name": "Engine", "Version": "20.10.24+dfsg1"}], "Version": "20.10.24+dfsg1"},
            ("docker", (20, 10, 24)),
        ),
        (
            {"Components": [{"Name": "Podman Engine", "Version": "5.4.0"}], "Version": "5.4.0"},
            ("podman", (5, 4, 0)),
        ),
        ({"Components": [{"Name": "Podman Engine", "Version": "5.5.0-rc1"}]}, ("podman", (5, 5, 0))),
        ({"Version": "28.2.2"}, ("docker", (28, 2, 2))),
    ],
)
def test_engines_are_told_apart_by_their_components(answer: dict[str, Any], expected: Any) -> None:
    """Podman answers with a version of its own under Docker's name."""
    assert identify(answer) == expected


def test_words_of_a_daemon_without_frame() -> None:
    """The explanation, where the client keeps one."""
    error = OSError('500 Server Error for http+docker://x: ("no")')
    assert words_of(error).startswith("500")

    error.explanation = "no such driver"  # type: ignore[attr-defined]

    assert words_of(error) == "no such driver"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"ExitCode": 0, "OOMKilled": False}, Exit(0)),
        ({"ExitCode": 137, "OOMKilled": True}, Exit(137, oom=True, signal="SIGKILL")),
        ({"ExitCode": 139, "OOMKilled": False}, Exit(139, signal="SIGSEGV")),
        ({"ExitCode": 255}, Exit(255)),
        ({"ExitCode": None}, Exit(None)),
    ],
)
def test_ends_of_a_container(state: dict[str, Any], expected: Exit) -> None:
    """Statuses above 128 name a signal; Docker tells when memory ran out."""
    assert exit_of(state) == expected


EVENTS: list[dict[str, Any]] = [
    {"status": "Pulling from vllm/vllm-openai", "id": "v0.32.0"},
    {"status": "Pulling fs layer", "id": "a"},
    {"status": "Already exists", "id": "b"},
    {"status": "Downloading", "id": "a", "progressDetail": {"current": 500_000_000, "total": 2_000_000_000}},
]


@dataclass
class Registry:
    """A client whose pull gives these events."""

    events: list[dict[str, Any]]
    asked: list[str] = field(default_factory=list)

    @property
    def api(self) -> Registry:
        """Itself."""
        return self

    def pull(self, name: str, *, stream: bool, decode: bool) -> Iterator[dict[str, Any]]:
        """The stream."""
        assert (stream, decode) == (True, True)
        self.asked.append(name)
        yield from self.events


def pulled(
    events: list[dict[str, Any]], image: str = "vllm/vllm-openai:v0.32.0"
) -> tuple[list[str], Registry]:
    """Pull with a clock that goes three seconds a look."""
    registry = Registry(events)
    said: list[str] = []
    one = Engine("docker", (28,), "unix:///x", registry, dict, (OSError,), FileNotFoundError)
    pull(one, image, said.append, lambda: False, count(0.0, 3.0).__next__)
    return said, registry


def test_pull_tells_how_far_it_is() -> None:
    """Layers and sizes, from the first moment on."""
    said, _ = pulled(EVENTS)

    assert said[0] == "pulling vllm/vllm-openai:v0.32.0"
    assert said[-1] == "pulling vllm/vllm-openai:v0.32.0: 1 of 2 layers, 0.5 of 2.0 GB"


def test_finished_layers_count_whole() -> None:
    """Also when the last progress came early."""
    progress = PullProgress("i")
    for event in [
        *EVENTS,
        {"status": "Download complete", "id": "a"},
        {"status": "Pull complete", "id": "a"},
    ]:
        progress.take(event)

    assert progress.line == "pulling i: 2 of 2 layers, 2.0 of 2.0 GB"


def test_refused_pull_gives_the_daemons_words() -> None:
    """And what they mean."""
    with pytest.raises(BootError) as caught:
        pulled([*EVENTS, {"error": "manifest for vllm/vllm-openai:v9 not found: manifest unknown"}])

    assert caught.value.what == (
        "the image vllm/vllm-openai:v0.32.0 is not on this machine and docker could not pull it"
    )
    assert caught.value.evidence == ("manifest for vllm/vllm-openai:v9 not found: manifest unknown",)
    assert "no such image" in caught.value.means


@pytest.mark.parametrize(
    ("image", "asked"),
    [
        ("vllm/vllm-openai", "vllm/vllm-openai:latest"),
        ("registry:5000/vllm", "registry:5000/vllm:latest"),
        ("vllm/vllm-openai:v1", "vllm/vllm-openai:v1"),
        ("vllm/vllm-openai@sha256:00", "vllm/vllm-openai@sha256:00"),
    ],
)
def test_never_every_tag(image: str, asked: str) -> None:
    """Without a tag engines pull all of them."""
    assert pulled([], image)[1].asked == [asked]
