"""What a profile is, once loaded and validated. Keys in TOML carry hyphens where fields carry underscores."""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - pydantic needs it at run time
from pathlib import Path  # noqa: TC003 - the same
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pytest_vllm.facts.launchers import LAUNCHERS, LauncherKind
from pytest_vllm.profile import units, values
from pytest_vllm.profile.flags import checked_args, covered, image_version, unknown_flags
from pytest_vllm.profile.limits import Bound, Duration, Limits
from pytest_vllm.profile.table import Part, faults

__all__ = [
    "BootPart",
    "Bound",
    "DeploymentPart",
    "ExpectPart",
    "Limits",
    "Part",
    "Profile",
    "RecordPart",
    "Secret",
    "ServerPart",
    "Waiver",
]


class Secret(Part):
    """A value that is only named, never written down: `{ from-env = "HF_TOKEN" }`."""

    from_env: str
    """The environment variable that holds it where pytest runs."""
    optional: bool = False
    """Whether the server starts without it, in `[server.env]`: it is left out where nothing sets it."""


LauncherName = Literal["docker", "podman", "process", "attach", "sim"]  # facts/launchers.py, as a type

EnvValue = Annotated[str | Secret, BeforeValidator(values.environment_value)]
Gpus = Annotated[str | int | list[str] | None, BeforeValidator(values.gpus)]
Volume = Annotated[str, AfterValidator(values.volume)]
Args = Annotated[dict[str, Any], AfterValidator(checked_args)]


class TlsPart(Part):
    """`[server.tls]`: whom the gate trusts beside the system's authorities, and what it shows of itself.

    Paths count from where pytest runs; `~` is the home of who runs it.
    """

    ca: str | None = None
    """File (or folder) of the authorities that signed the server's certificate, in PEM."""
    certificate: str | None = None
    """File of the client certificate to show, in PEM; its key may lie in the same file."""
    key: str | None = None
    """File of the client certificate's key, not encrypted."""

    @model_validator(mode="after")
    def _whole(self) -> TlsPart:
        """A key needs the certificate that it belongs to."""
        if self.key and not self.certificate:
            raise faults([(("key",), "a key alone shows nothing: name its certificate too")])
        return self


class ServerPart(Part):
    """`[server]`: what to start and where."""

    launcher: LauncherName = "docker"
    """What starts it."""
    image: str | None = None
    """The container image; a tag is accepted, the digest is recorded."""
    model: str = ""
    """What vLLM serves: a repository id or a path (inside the container)."""
    served_model_name: str | None = None
    """The name that requests use; the model itself unless told otherwise."""
    url: Annotated[str | None, AfterValidator(values.server_url)] = None
    """Where a server runs already (launcher attach): base URL without `/v1`, or `unix:/run/vllm.sock`."""
    tls: TlsPart = Field(default_factory=TlsPart)
    """How TLS is spoken with it."""
    proxy: Annotated[str | None, AfterValidator(values.proxy)] = None
    """`http://HOST:PORT` for every address, or `none`; left out: `http_proxy` and its kin count."""
    api_key: Annotated[Secret | None, BeforeValidator(values.reference)] = None
    """The key that the server asks for, by reference."""
    gpus: Gpus = None
    """`all`, a number, or a list of device ids (`0`, `GPU-…`, CDI names such as `nvidia.com/gpu=0`)."""
    env: dict[str, EnvValue] = Field(default_factory=dict)
    """Environment variables of the server; secrets by reference."""
    volumes: list[Volume] = Field(default_factory=list)
    """`HOST:CONTAINER[:ro]`; `~` and `${NAME}` are resolved where pytest runs."""
    shm: Annotated[str, AfterValidator(units.shared_memory)] | None = None
    """Size of /dev/shm as `docker run --shm-size` takes it: `64g` is 64 GiB."""
    ipc: str | None = None
    """IPC namespace: `host` or `private`."""
    devices: list[str] = Field(default_factory=list)
    """Devices that are not NVIDIA's GPUs: `/dev/kfd`, `/dev/dri:/dev/dri:rwm`, CDI names."""
    cap_add: list[str] = Field(default_factory=list)
    """Capabilities that the container gets: `SYS_PTRACE`, `IPC_LOCK`."""
    cap_drop: list[str] = Field(default_factory=list)
    """Capabilities that it loses."""
    group_add: list[str] = Field(default_factory=list)
    """Groups that its user is in besides, by name or number: `video`, `render`."""
    ulimits: dict[str, str] = Field(default_factory=dict)
    """Limits as `docker run --ulimit` takes them: `{ memlock = "-1", nofile = "1024:4096" }`."""
    privileged: bool = False
    """Whether it may do all that its host can."""
    runtime: str | None = None
    """The runtime that starts it, such as `habana`; for NVIDIA's GPUs it is `gpus` that counts."""
    user: str | None = None
    """Who it runs as: `1000:1000`."""
    workdir: str | None = None
    """The folder that its program starts in."""
    entrypoint: list[str] | None = None
    """Replaces the image's entry point."""
    command: list[str] | None = None
    """What is run before the arguments: `["vllm", "serve"]`, or a Python module's command line."""
    version: str | None = None
    """vLLM's version, where the image's tag does not tell it."""
    scripted: bool = False
    """Whether it is the scripted engine: a tiny model made for it, which says what requests script."""
    side_by_side: bool = False
    """Whether it fits on the machine beside the other profiles of a run."""
    args: Args = Field(default_factory=dict)
    """Exactly vLLM's flags without dashes: `true` is a bare flag, a table is JSON."""

    @model_validator(mode="after")
    def _known_flags(self) -> ServerPart:
        """A flag that no release has is a slip, where a release is what starts."""
        found = list(unknown_flags(self.args)) if self.facts_hold else []
        if found:
            raise faults([(("args", name), text) for name, text in found])
        return self

    @property
    def facts_hold(self) -> bool:
        """Whether what pytest-vllm knows of vLLM's releases holds for this one."""
        return covered(self.launcher, self.image, self.version)

    @property
    def vllm_version(self) -> str:
        """The version of vLLM as the profile or the image's tag tells it; empty when neither does."""
        return self.version or image_version(self.image)

    @property
    def kind(self) -> LauncherKind:
        """What is known of its launcher."""
        return LAUNCHERS[self.launcher]


class DeploymentPart(Part):
    """`[deployment]`: how it runs in production. The gate boots its own copy, which takes none of this."""

    name: str | None = None
    """The container's or unit's name."""
    kind: (
        Literal[
            "compose",
            "docker-run",
            "podman-run",
            "dockerfile",
            "systemd",
            "systemd-user",
            "kubernetes",
            "shell",
        ]
        | None
    ) = None
    """What it is written down as."""
    restart: str | None = None
    """Restart policy: `unless-stopped`, `always`, …"""
    ports: list[str] = Field(default_factory=list)
    """Published ports as Docker writes them: `8000:8000`, `127.0.0.1:11437:8000`."""
    listens: int | None = Field(default=None, ge=1, le=65535)
    """The port inside of the container that the server listens on, where it is not vLLM's 8000."""
    binds: str | None = None
    """The address inside of the container that the server listens on, where it is not every one."""
    network: str | None = None
    """The container's network: `host`, or the runtime's default when left out."""
    network_shared: bool = False
    """Whether another container has the same network, so that a published port may lead to that one."""
    ready_within: Duration | None = None
    """How long production waits for a start before it kills the server, or gives the start up."""
    ready_by: str = ""
    """Who gives it up then: `the livenessProbe`, `autoheal`, …"""
    security_opt: list[str] = Field(default_factory=list)
    """Security options of the container runtime, such as `label=disable`."""
    remove: bool = False
    """Whether the container is removed when it ends (`--rm`)."""
    service: dict[str, str | list[str]] = Field(default_factory=dict)
    """Lines of the unit that are not part of the command: `User`, `RestartSec`, …"""
    replicas: int = Field(default=1, ge=1)
    """Servers behind the proxy."""
    machines: int = Field(default=1, ge=1)
    """Machines or pods that one server runs over; the gate starts one of them."""
    mounts: list[str] = Field(default_factory=list)
    """Folders of the container that production mounts, and that no volume of the profile stands for."""
    memory: Annotated[int, BeforeValidator(units.in_bytes)] | None = None
    """The host's memory that the container may use: `32GiB`."""
    proxy: ProxyPart | None = None
    """What clients reach instead of the server itself."""


class ProxyPart(Part):
    """`[deployment.proxy]`: the proxy in front of the servers."""

    kind: Literal["nginx", "envoy", "other"] = "nginx"
    """Which proxy."""
    server_name: str | None = None
    """The name that clients use."""
    path: str = "/v1/"
    """What it passes on."""
    rate_per_s: float | None = None
    """Requests per second and client that it lets through."""
    burst: int | None = None
    """Requests above the rate that it lets through at once."""
    buffering: bool = False
    """Whether it holds responses back; streams need it off."""
    read_timeout: Duration | None = None
    """How long it waits for the server's next bytes."""
    direct: str | None = None
    """URL of a server behind it, as the gate reaches it, to measure what the proxy costs."""


class BootPart(Part):
    """`[boot]`: how long a start may take."""

    timeout: Duration = 900.0
    """From start to ready."""
    stalled: Duration = 240.0
    """Without a new log line."""


class RecordPart(Part):
    """`[record]`: how long an exchange may take before it is given up."""

    timeout: Duration = 300.0
    """A whole exchange."""
    silence: Duration = 60.0
    """Without a byte, once the response has begun."""


class MeasurePart(Part):
    """`[measure]`: how long the gate may measure speeds, all measurements together."""

    budget: Duration = 180.0
    """Seconds of scored load, shared out among the measurements; each stops once its bounds are decided."""
    soak: Duration = 900.0
    """The same in the soak tier."""
    rehearsal: Duration = 0.9
    """On the simulator at most so long of wall-clock time; 0: only what is asked for by `--vllm-check`."""
    vllm_bench: bool = False
    """Whether `vllm bench serve` is run too, where the server runs, as a second opinion on one load."""
    locust: int = Field(default=0, ge=0, le=256)
    """Worker processes on this machine that send the loads, spread by Locust; 0: the gate itself does."""
    locust_elsewhere: int = Field(default=0, ge=0, le=256)
    """Workers that are waited for besides, which you start on other machines: `pytest-vllm load-worker`."""
    locust_address: Annotated[str, AfterValidator(values.address)] = "127.0.0.1:0"
    """Where workers on other machines find the gate: its machine's IP address and a port, `10.0.0.5:5557`."""

    @model_validator(mode="after")
    def _reachable(self) -> MeasurePart:
        """Workers elsewhere need an address that is not this machine's own loopback."""
        if self.locust_elsewhere and self.locust_address == "127.0.0.1:0":
            shape = 'locust-address = "10.0.0.5:5557", an IP address of this machine and a port'
            raise faults([(("locust-elsewhere",), f"workers elsewhere need to be told where: {shape}")])
        return self


class ExplorePart(Part):
    """`[explore]`: requests drawn at random, in the tier of that name."""

    budget: Duration = 120.0
    """Seconds of drawing, asking and making simpler what failed."""
    without: list[str] = Field(default_factory=list)
    """What is not drawn: names of `suites/explore/space.py`, ids of `fixtures/cases/fields.json`."""


class ExpectPart(Part):
    """`[expect]`: what must be there; an absent capability that is expected is a failure."""

    known_faults: Literal["waive", "fail"] = "waive"
    """Whether faults that vLLM itself is known to have count: see `fixtures/waivers/vllm.toml`."""

    capabilities: list[Annotated[str, AfterValidator(values.capability)]] = Field(default_factory=list)
    """What clients need of this server."""
    checks: list[str] = Field(default_factory=list)
    """Ids or id prefixes of the checks that the profile is about; all of them when left out."""
    clients: list[Annotated[str, AfterValidator(values.client)]] = Field(default_factory=list)
    """Clients that must work with this server; each is run against it: see docs/clients.md."""
    version: str | None = None
    """vLLM's version as `/version` answers."""
    block_size: int | None = Field(default=None, ge=1)
    """Tokens per KV cache block."""


class Waiver(Part):
    """`[[waive]]`: a failing check that is known, with a reason, an issue, a version range and an end."""

    check: Annotated[str, AfterValidator(values.check_id)]
    """The check's id, or one case of it in brackets."""
    reason: Annotated[str, AfterValidator(values.not_blank)]
    """Why it does not matter to this deployment."""
    issue: Annotated[str, AfterValidator(values.issue)]
    """Where the fault is known: a URL, or `owner/repository#number`."""
    versions: Annotated[str, AfterValidator(values.version_range)]
    """vLLM versions it holds for: `>=0.27,<0.34`."""
    until: dt.date
    """The last day on which it holds."""
    capability: Annotated[str, AfterValidator(values.capability)] | None = None
    """It holds on servers that have this capability alone."""


class Profile(Part):
    """A deployment: what to start, what it must do, how fast.

    `hardware` and `model` name files of fixtures/hardware and fixtures/models; both may be absent.
    """

    name: str = ""
    source: Path | None = None
    description: str = ""
    """One line for people."""
    hardware: str | None = None
    """The hardware file: memory, bandwidth and FLOPs."""
    model: str | None = None
    """The model file: layers, heads, bytes per weight; or the path of a config.json."""
    server: ServerPart = Field(default_factory=ServerPart)
    boot: BootPart = Field(default_factory=BootPart)
    record: RecordPart = Field(default_factory=RecordPart)
    measure: MeasurePart = Field(default_factory=MeasurePart)
    explore: ExplorePart = Field(default_factory=ExplorePart)
    expect: ExpectPart = Field(default_factory=ExpectPart)
    limits: Limits = Field(default_factory=Limits)
    waive: list[Waiver] = Field(default_factory=list)
    deployment: DeploymentPart = Field(default_factory=DeploymentPart)
    defects: list[str] = Field(default_factory=list)
    """Faults that the simulator is to have."""


#: Fields of a profile that no file sets.
GIVEN = ("name", "source")
