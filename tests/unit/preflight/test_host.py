"""Facts of the machine: from small servers on the loopback, made-up libraries and folders."""

# ruff: noqa: N802, ARG002 - the names of the library and of the server's base class

from __future__ import annotations

import http.server
import json
import threading
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.preflight.deployment import deployment_of, hardware_of
from pytest_vllm.preflight.host import Gpu, Host
from pytest_vllm.preflight.inspect import (
    accelerators,
    find_tenants,
    inspect_host,
    is_taken,
    meminfo,
    read_gpus,
    wanted_ports,
)
from pytest_vllm.profile.model import Profile
from tests.unit.preflight.building import found, rules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Answers = dict[str, Any]


@pytest.fixture
def serving() -> Iterator[Callable[[Answers], int]]:
    """Starts a server that answers these paths with JSON and others with 404; gives its port."""
    started: list[http.server.ThreadingHTTPServer] = []

    def start(answers: Answers) -> int:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                known = self.path in answers
                body = answers[self.path] if known else {}
                text = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(200 if known else 404)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *words: object) -> None:
                """Says nothing."""

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        started.append(server)
        return server.server_address[1]

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def test_ollama_with_a_model_loaded(serving: Callable[[Answers], int]) -> None:
    """What it holds, and how to make it let go."""
    port = serving({"/api/ps": {"models": [{"name": "qwen3:32b", "size": 22, "size_vram": 21}]}})
    (tenant,) = find_tenants({"ollama": [port]})

    assert (tenant.kind, tenant.holds, tenant.models) == ("ollama", 21, ("qwen3:32b",))
    assert tenant.remedy == (
        f'curl -s http://127.0.0.1:{port}/api/generate -d \'{{"model": "qwen3:32b", "keep_alive": 0}}\''
    )


def test_ollama_with_nothing_loaded_holds_nothing(serving: Callable[[Answers], int]) -> None:
    """It is no tenant then."""
    assert find_tenants({"ollama": [serving({"/api/ps": {"models": []}})]}) == ()


def test_llama_cpp_and_vllm(serving: Callable[[Answers], int]) -> None:
    """Each by an answer that only it gives."""
    llama = serving({"/props": {"total_slots": 4, "model_path": "/m/qwen3-32b-q5_k_m.gguf"}})
    vllm = serving(
        {"/version": {"version": "0.32.0"}, "/v1/models": {"data": [{"id": "a", "owned_by": "vllm"}]}}
    )
    tenants = find_tenants({"llama.cpp": [llama], "vllm": [vllm]})

    assert [str(one) for one in tenants] == [
        f"llama.cpp at http://127.0.0.1:{llama} (qwen3-32b-q5_k_m.gguf)",
        f"vLLM 0.32.0 at http://127.0.0.1:{vllm} (a)",
    ]


@pytest.mark.parametrize("answer", [{}, b"<html>", b"\xff", {"/api/ps": 3}, {"models": 3}, []])
def test_another_service_is_no_tenant(serving: Callable[[Answers], int], answer: object) -> None:
    """Whatever it answers."""
    port = serving(dict.fromkeys(("/api/ps", "/props", "/version", "/v1/models"), answer))

    assert find_tenants({"ollama": [port], "llama.cpp": [port], "vllm": [port]}) == ()


def test_ports(serving: Callable[[Answers], int]) -> None:
    """Those that the deployment publishes, and whether something listens there."""
    port = serving({})
    server = {"image": "x:1", "args": {"port": 8000}}
    profile = Profile.model_validate(
        {"server": server, "deployment": {"ports": [f"127.0.0.1:{port}:8000", "9999"]}}
    )
    own = Profile.model_validate({"server": {"launcher": "process", "args": {"port": port}}})

    assert wanted_ports(profile) == [port]
    assert wanted_ports(own) == [port]
    assert is_taken(port)
    assert inspect_host(profile, ports={}).taken_ports == (port,)
    assert inspect_host(profile, ports={}, skip=[port]).taken_ports == ()


def test_meminfo(tmp_path: Path) -> None:
    """In bytes; unknown where there is no such file."""
    file = tmp_path / "meminfo"
    file.write_text("MemTotal:       1024 kB\nMemFree: 1 kB\nMemAvailable:    512 kB\n", "ascii")

    assert meminfo(file) == (1024 * 1024, 512 * 1024)
    assert meminfo(tmp_path / "none") == (None, None)


class Nvml:
    """What NVIDIA's library answers; memory is not told for unified GPUs."""

    class NVMLError(Exception):
        """Its only error."""

    def __init__(self, *, unified: bool = False, there: bool = True) -> None:
        self.unified, self.there, self.closed = unified, there, False

    def nvmlInit(self) -> None:
        if not self.there:
            raise self.NVMLError

    def nvmlShutdown(self) -> None:
        self.closed = True

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"580.95"

    def nvmlDeviceGetCount(self) -> int:
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetName(self, handle: int) -> str:
        return "NVIDIA GB10"

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:
        return 12, 1

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        if self.unified:
            raise self.NVMLError
        return type("Memory", (), {"total": 100, "free": 40})


def test_gpus_as_the_library_tells_them() -> None:
    """With their memory where it is told; the library is let go."""
    nvml = Nvml()

    assert read_gpus(nvml) == ((Gpu("NVIDIA GB10", 100, 40, (12, 1)),), "580.95")
    assert nvml.closed
    assert read_gpus(Nvml(unified=True))[0] == (Gpu("NVIDIA GB10", 0, 0, (12, 1)),)
    assert read_gpus(Nvml(there=False)) == ((), "")


def test_memory_of_unified_and_other_gpus() -> None:
    """MemAvailable or NVML; unknown stays unknown."""
    host = Host((Gpu("x", 100, 40),), available=5, memory=9)

    assert host.gpu_memory(unified=False) == (40, 100, "NVML")
    assert host.gpu_memory(unified=True) == (5, 9, "MemAvailable")
    assert Host(available=5, memory=9).gpu_memory(unified=True) is None
    assert Host((Gpu("x", 0, 0),)).gpu_memory(unified=False) is None


def test_a_machine_without_such_devices_is_another(tmp_path: Path) -> None:
    """A profile for a GPU that is looked at in CI: nothing is said of CI's disk and folders."""
    (tmp_path / "nvidiactl").touch()

    assert accelerators(tmp_path) == ("nvidia",)
    assert accelerators(tmp_path / "none") == ()
    overlay = "server.volumes = ['/there/is/none:/root/.cache/huggingface']\nhost = { accelerators = %s }"
    assert "cache.host-path-missing" in rules_of(found(overlay % "['nvidia']"))
    assert "cache.host-path-missing" not in rules_of(found(overlay % "[]"))


@pytest.mark.parametrize(
    ("server", "here"),
    [
        ("launcher = 'process'\nargs = { tensor-parallel-size = 2 }", False),
        ("launcher = 'docker'\nimage = 'registry.example/vllm-ascend:1'", False),
        ("launcher = 'process'\nargs = { device = 'cpu' }", True),
        ("launcher = 'process'\nenv = { VLLM_CPU_KVCACHE_SPACE = '4' }", True),
        ("launcher = 'docker'\nimage = 'registry.example/vllm-cpu:1'", True),
    ],
)
def test_a_process_names_no_gpus_and_wants_some(server: str, here: bool, tmp_path: Path) -> None:
    """A machine without accelerators is not the one that a vLLM is for, unless that runs on the CPU."""
    profile = Profile.model_validate(tomllib.loads(f"[server]\nmodel = 'org/a'\n{server}\n"))

    assert (deployment_of(profile, tmp_path, Host(accelerators=())).here is not None) is here
    assert deployment_of(profile, tmp_path, Host(accelerators=("nvidia",))).here is not None


@pytest.mark.parametrize(
    ("gpu", "title"),
    [
        (Gpu("NVIDIA GB10", 0, 0, (12, 1)), "GB10"),
        (Gpu("NVIDIA GeForce RTX 5090", 34_190_917_632, 0, (12, 0)), "5090"),
        (Gpu("NVIDIA H100 80GB HBM3", 85_520_809_984, 0, (9, 0)), "H100"),
    ],
)
def test_the_hardware_that_this_machine_has(gpu: Gpu, title: str, tmp_path: Path) -> None:
    """Where the profile names none, as imported ones do."""
    hardware = hardware_of(Host((gpu,)), tmp_path)

    assert hardware is not None
    assert title in hardware.title
    assert hardware_of(Host((Gpu("NVIDIA X", 1, 0, (9, 0)),)), tmp_path) is None
    assert hardware_of(Host(), tmp_path) is None


def test_what_a_cache_holds(tmp_path: Path) -> None:
    """A repository with a snapshot, below the folder or its hub; unknown for named volumes."""
    host = Host()
    snapshot = tmp_path / "hub" / "models--Qwen--Qwen3-32B" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)

    assert host.cached(str(tmp_path), "Qwen/Qwen3-32B") is True
    assert host.cached(str(tmp_path), "Qwen/Other") is False
    assert host.cached(str(tmp_path / "none"), "Qwen/Other") is False
    assert host.cached("named-volume", "Qwen/Other") is None
    assert host.folder_missing(str(tmp_path / "none"))
    assert not host.folder_missing("named-volume")
    assert (host.free_disk(str(tmp_path / "not" / "yet")) or 0) > 0
    assert host.writable(str(tmp_path)) is True
