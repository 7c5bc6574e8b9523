"""Asks the machine: GPUs, memory, engines, ports, and other servers of models on the loopback.

Nothing is changed, nothing leaves the machine, every question has a short time limit.
"""

from __future__ import annotations

import importlib
import json
import os
import shlex
import shutil
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_vllm.preflight.host import Gpu, Host, Tenant
from pytest_vllm.wire.ask import ask
from pytest_vllm.wire.policy import Access, route_to
from pytest_vllm.wire.proxy import NONE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_vllm.profile.model import Profile

LOOPBACK = "127.0.0.1"
#: Where they usually listen: Ollama; llama.cpp's server and the guides' port for it; vLLM.
PORTS: Mapping[str, tuple[int, ...]] = {
    "ollama": (11434,),
    "llama.cpp": (8080, 8081, 11436),
    "vllm": (8000, 8001, 11437),
}
SECONDS = 0.5
#: Hosts of an OLLAMA_HOST that mean this machine.
HERE = (None, "localhost", LOOPBACK, "::1", "0.0.0.0", "::")  # noqa: S104 - nothing is bound


def usual_ports(environ: Mapping[str, str] = os.environ) -> Mapping[str, tuple[int, ...]]:
    """Where each kind of server usually listens on this machine; Ollama also where its OLLAMA_HOST says."""
    told = environ.get("OLLAMA_HOST", "").strip()
    where = urlsplit(told if "://" in told else f"//{told}")
    try:
        port = where.port
    except ValueError:  # not a port that anything listens on
        port = None
    if port is None or where.hostname not in HERE or port in PORTS["ollama"]:
        return PORTS
    return {**PORTS, "ollama": (*PORTS["ollama"], port)}


def inspect_host(
    profile: Profile | None = None,
    *,
    ports: Mapping[str, Iterable[int]] | None = None,
    skip: Iterable[int] = (),
) -> Host:
    """The facts that can be had, within about a second.

    Args:
        profile: whose ports are looked at.
        ports: where each kind of server is looked for; the usual ones unless given.
        skip: ports that are ours: no tenant, not taken.
    """
    gpus, driver = _gpus()
    memory, available = meminfo()
    ours = set(skip)
    how = []
    if gpus:
        how.append(("gpus", "NVML"))
    if available is not None:
        how.append(("available", "/proc/meminfo"))
    tenants = find_tenants(ports, ours)
    if tenants:
        how.append(("tenants", "answers on the loopback"))
    taken = (
        tuple(one for one in wanted_ports(profile) if one not in ours and is_taken(one)) if profile else ()
    )
    makers = accelerators()
    return Host(gpus, driver, available, memory, _engines(), tenants, taken, tuple(how), makers)


def free_memory(*, unified: bool, index: int = 0) -> tuple[int, int] | None:
    """Free and all bytes of a GPU; where the memory is the CPU's too, of the system. None when unknown."""
    memory, available = meminfo()
    found = Host(_gpus()[0], "", available, memory, accelerators=accelerators())
    known = found.gpu_memory(unified=unified, index=index)
    return known[:2] if known else None


def accelerators(devices: Path = Path("/dev")) -> tuple[str, ...]:
    """Makers whose device files are here, also without any library of theirs."""
    files = {"nvidia": ("nvidiactl", "nvidia0", "nvhost-gpu", "dxg"), "amd": ("kfd",)}
    return tuple(maker for maker, names in files.items() if any((devices / name).exists() for name in names))


def _gpus() -> tuple[tuple[Gpu, ...], str]:
    """GPUs and the driver as NVML tells them; none without nvidia-ml-py or a driver."""
    try:
        pynvml = importlib.import_module("pynvml")  # an optional package
    except ImportError:
        return (), ""
    return read_gpus(pynvml)


def read_gpus(nvml: Any) -> tuple[tuple[Gpu, ...], str]:
    """The same from the given library: what `pynvml` offers."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return (), ""
    try:
        driver = _text(nvml.nvmlSystemGetDriverVersion())
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        return tuple(_gpu(nvml, handle) for handle in handles), driver
    except nvml.NVMLError:
        return (), ""
    finally:
        nvml.nvmlShutdown()


def _gpu(nvml: Any, handle: Any) -> Gpu:
    try:
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        total, free = int(memory.total), int(memory.free)
    except nvml.NVMLError:  # unified memory: "not supported"
        total = free = 0
    try:
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
        capability = (int(major), int(minor))
    except nvml.NVMLError:
        capability = None
    return Gpu(_text(nvml.nvmlDeviceGetName(handle)), total, free, capability)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def meminfo(file: Path = Path("/proc/meminfo")) -> tuple[int | None, int | None]:
    """All memory, and what the system can give to new processes, in bytes."""
    try:
        lines = file.read_text("ascii", "replace").splitlines()
    except OSError:
        return None, None
    rows = {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}

    def kib(name: str) -> int | None:
        words = rows.get(name, [])
        return int(words[0]) * 1024 if words and words[0].isdigit() else None

    return kib("MemTotal"), kib("MemAvailable")


def _engines() -> tuple[str, ...]:
    """Container engines whose program, socket or address is here."""
    user = f"/run/user/{os.getuid()}" if hasattr(os, "getuid") else "/run"
    docker = ("/var/run/docker.sock", f"{user}/docker.sock")
    podman = ("/run/podman/podman.sock", f"{user}/podman/podman.sock")
    found = []
    if shutil.which("docker") or os.environ.get("DOCKER_HOST") or any(Path(one).exists() for one in docker):
        found.append("docker")
    if (
        shutil.which("podman")
        or os.environ.get("CONTAINER_HOST")
        or any(Path(one).exists() for one in podman)
    ):
        found.append("podman")
    return tuple(found)


def wanted_ports(profile: Profile) -> list[int]:
    """The ports of this machine that the deployment publishes or binds."""
    if profile.server.kind.container:
        outer = [one.rpartition(":")[0].rpartition(":")[2] for one in profile.deployment.ports]
        return [int(one) for one in outer if one.isdigit()]
    port = profile.server.args.get("port")
    return [port] if isinstance(port, int) and profile.server.launcher == "process" else []


def is_taken(port: int) -> bool:
    """Whether something listens on the port of the loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
        one.settimeout(SECONDS)
        return one.connect_ex((LOOPBACK, port)) == 0


def find_tenants(
    ports: Mapping[str, Iterable[int]] | None = None, skip: Iterable[int] = ()
) -> tuple[Tenant, ...]:
    """Other servers of models, by their usual ports unless others are given, in that order but for `skip`."""
    looked, ours = usual_ports() if ports is None else ports, set(skip)
    asked: list[tuple[Callable[[int], Tenant | None], int]] = [
        (_ASK[kind], port) for kind, which in looked.items() for port in which if port not in ours
    ]
    if not asked:
        return ()
    with ThreadPoolExecutor(max_workers=len(asked)) as pool:
        answers = pool.map(lambda one: one[0](one[1]), asked)
        return tuple(answer for answer in answers if answer is not None)


def _ollama(port: int) -> Tenant | None:
    body = get_json(port, "/api/ps")
    if not isinstance(body, dict) or not isinstance(body.get("models"), list):
        return None
    loaded = [one for one in body["models"] if isinstance(one, dict)]
    if not loaded:
        return None  # it runs and holds nothing
    holds = sum(int(one.get("size_vram") or one.get("size") or 0) for one in loaded)
    names = tuple(str(one.get("name", "")) for one in loaded)
    url = f"http://{LOOPBACK}:{port}"
    bodies = [json.dumps({"model": name, "keep_alive": 0}) for name in names]
    remedy = "; ".join(f"curl -s {url}/api/generate -d {shlex.quote(body)}" for body in bodies)
    return Tenant("ollama", url, holds, names, remedy)


def _llama_cpp(port: int) -> Tenant | None:
    body = get_json(port, "/props")
    if not isinstance(body, dict) or not {"default_generation_settings", "total_slots"} & body.keys():
        return None
    path = str(body.get("model_path") or body.get("model_alias") or "")
    models = (Path(path).name,) if path else ()
    return Tenant("llama.cpp", f"http://{LOOPBACK}:{port}", None, models, _stop_hint(port))


def _vllm(port: int) -> Tenant | None:
    version = get_json(port, "/version")
    listed = get_json(port, "/v1/models")
    if not isinstance(version, dict) or set(version) != {"version"} or not isinstance(listed, dict):
        return None
    data = listed.get("data")
    models: list[Any] = data if isinstance(data, list) else []
    if models and not any(isinstance(one, dict) and one.get("owned_by") == "vllm" for one in models):
        return None
    names = tuple(str(one.get("id", "")) for one in models if isinstance(one, dict))
    return Tenant(f"vLLM {version['version']}", f"http://{LOOPBACK}:{port}", None, names, _stop_hint(port))


def _stop_hint(port: int) -> str:
    """How a person stops the service behind a port: it cannot let go of its memory otherwise."""
    return (
        f"docker stop $(docker ps -q --filter publish={port}), or systemctl --user stop UNIT, where "
        f"ss -ltnp 'sport = :{port}' shows its process"
    )


_ASK: dict[str, Callable[[int], Tenant | None]] = {
    "ollama": _ollama,
    "llama.cpp": _llama_cpp,
    "vllm": _vllm,
}


def get_json(port: int, path: str) -> Any:
    """A small JSON answer of a server on the loopback; None when there is none in time."""
    try:
        answer = ask(route_to(f"http://{LOOPBACK}:{port}", Access(proxy=NONE)), path, timeout=SECONDS)
        return json.loads(answer.body) if answer.status == 200 else None
    except (OSError, ValueError):
        return None
