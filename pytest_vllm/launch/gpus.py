"""GPUs for a container: how to ask this engine for them, and the proof that they arrived.

An engine may take the request and drop it (Podman before 5.4 does, measured on 4.3.1), so what it was asked
for says nothing; what can be seen inside does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.launch.protocol import BootError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.launch.engine import Engine

_KIND = "nvidia.com/gpu"
_PODMAN_WITH_CDI = (5, 4)
#: Run inside; `nvidia-smi` comes with the toolkit, the device nodes are there without it too.
PROOF = ["sh", "-c", "nvidia-smi -L 2>/dev/null || ls -d /dev/nvidia[0-9]* /dev/dxg 2>/dev/null"]


@dataclass(frozen=True)
class GpuRequest:
    """How GPUs are asked for.

    Args:
        how: for people and the report: "cdi", "runtime nvidia", "device request".
        create: arguments of the create call.
        env: environment entries.
        count: how many must be seen inside; None for all there are, but at least one.
    """

    how: str
    create: Mapping[str, Any]
    env: Mapping[str, str] = field(default_factory=dict)
    count: int | None = None


def gpu_request(engine: Engine, gpus: str | int | list[str] | None) -> GpuRequest | None:
    """The first way that this engine offers: CDI, then the nvidia runtime, then Docker's own request.

    Args:
        engine: what it says about itself decides.
        gpus: "all", a number of GPUs, or indices or UUIDs ("0,1" or a list); None or 0 asks for none.
    """
    wanted = _ids(gpus)
    if wanted is None:
        return None
    count = None if wanted == ["all"] else len(wanted)
    if engine.name == "podman" or _has_cdi(engine):
        names = [one if "=" in one else f"{_KIND}={one}" for one in wanted]
        request: dict[str, Any] = {"driver": "cdi", "device_ids": names}
        return GpuRequest("cdi", {"device_requests": [request]}, count=count)
    if "nvidia" in (engine.info.get("Runtimes") or {}):
        env = {"NVIDIA_VISIBLE_DEVICES": ",".join(wanted), "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
        return GpuRequest("runtime nvidia", {"runtime": "nvidia"}, env, count)
    request = {"capabilities": [["gpu"]]}
    request |= {"count": -1} if count is None else {"device_ids": wanted}
    return GpuRequest("device request", {"device_requests": [request]}, count=count)


def proven(container: Any, engine: Engine, request: GpuRequest) -> list[str]:
    """The GPUs seen inside the running container, one line each. Raises BootError when they are not there.

    A container that has ended meanwhile gives an empty list: its log tells why.
    """
    try:
        status, output = container.exec_run(PROOF)
    except engine.errors as error:
        status, output = 1, str(error).encode()
    seen = [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    if status == 0 and seen and len(seen) >= (request.count or 1):
        return seen
    container.reload()
    if not container.attrs["State"]["Running"]:
        return []
    raise _not_there(engine, request, seen if status == 0 else [])


def _not_there(engine: Engine, request: GpuRequest, seen: list[str]) -> BootError:
    wanted = "GPUs" if request.count is None else f"{request.count} GPU{'s' * (request.count > 1)}"
    means = "the engine took the request and the container has no GPU; vLLM would fail, or run on the CPU"
    tries = ["look at it alone: nvidia-smi -L on the host, then inside a container"]
    if engine.name == "podman" and engine.version < _PODMAN_WITH_CDI:
        means = f"{engine.shown} silently drops GPU requests that come through its socket; 5.4.0 honours them"
        tries = ["update podman to 5.4 or later", "or use --vllm-launcher=docker, or process"]
    elif engine.name == "podman":
        tries.append("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml")
    evidence = tuple(seen) or ("no GPU is visible inside the container",)
    return BootError(
        f"{wanted} asked for by {request.how}, {len(seen) or 'none'} inside the container",
        evidence=evidence,
        means=means,
        try_=tuple(tries),
    )


def _ids(gpus: str | int | list[str] | None) -> list[str] | None:
    match gpus:
        case None | 0 | "" | "none" | []:
            return None
        case int():
            return [str(index) for index in range(gpus)] if gpus > 0 else ["all"]
        case str():
            return [one.strip() for one in gpus.removeprefix("device=").split(",") if one.strip()]
        case _:
            return [str(one) for one in gpus]


def _has_cdi(engine: Engine) -> bool:
    found = engine.info.get("DiscoveredDevices")
    if found:
        return any(_KIND in str(device.get("ID", "")) for device in found)
    folders = engine.info.get("CDISpecDirs") or ()
    return engine.local and any(_names_gpus(spec) for folder in folders for spec in _specs(Path(folder)))


def _specs(folder: Path) -> list[Path]:
    return [*folder.glob("*.yaml"), *folder.glob("*.yml"), *folder.glob("*.json")] if folder.is_dir() else []


def _names_gpus(spec: Path) -> bool:
    try:
        return _KIND in spec.read_text("utf-8", "replace")
    except OSError:
        return False
