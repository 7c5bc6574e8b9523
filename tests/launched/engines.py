"""The container engines of this machine, for tests; each says exactly why it is not there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.launch import docker
from pytest_vllm.launch.protocol import BootError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: A small image with a `python3`, made by `python -m tests.real.image --rootfs-only` where there is none.
IMAGE = os.environ.get("PYTEST_VLLM_TEST_IMAGE", "pytest-vllm/base:bookworm")


def until(condition: Callable[[], object], what: str, seconds: float = 30.0) -> None:
    """Wait for something that another process does."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(0.01)


def docker_or_skip() -> str:
    """The URL of a Docker daemon that has the test image."""
    url = docker.url_from(os.environ)
    try:
        engine = docker.connect(url, answer=20)
    except BootError as error:
        pytest.skip(f"{error.what}: {' '.join(error.evidence)}")
    try:
        engine.client.images.get(IMAGE)
    except engine.missing:
        pytest.skip(f"docker has no image {IMAGE}: python -m tests.real.image --rootfs-only")
    finally:
        engine.client.close()
    return url


@contextmanager
def podman_service() -> Iterator[str]:
    """The URL of a Podman of our own, with a storage of its own that holds the test image."""
    for program in ("podman", "runc"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    docker_or_skip()
    # a short path: sockets may not have long ones
    with tempfile.TemporaryDirectory(prefix="pv-") as name:
        folder = Path(name)
        env = {**os.environ, **_configuration(folder)}
        socket = folder / "podman.sock"
        command = ["podman", "system", "service", "--time=0", f"unix://{socket}"]
        with (folder / "service.log").open("wb") as output:
            service = subprocess.Popen(command, env=env, stdout=output, stderr=output)
        try:
            _load(env)
            until(socket.exists, "podman's socket")
            yield f"unix://{socket}"
        finally:
            subprocess.run(
                ["podman", "rm", "--all", "--force", "--time=0"], env=env, check=False, capture_output=True
            )
            subprocess.run(["podman", "rmi", "--all", "--force"], env=env, check=False, capture_output=True)
            service.terminate()
            service.wait(timeout=20)
            subprocess.run(["umount", folder / "graph/overlay"], check=False, capture_output=True)


def _load(env: dict[str, str]) -> None:
    with subprocess.Popen(["docker", "save", IMAGE], stdout=subprocess.PIPE) as saved:
        subprocess.run(["podman", "load"], stdin=saved.stdout, env=env, check=True, capture_output=True)


def _configuration(folder: Path) -> dict[str, str]:
    """Settings with which Podman also runs inside a small virtual machine without systemd."""
    (folder / "containers.conf").write_text(
        '[containers]\ndefault_ulimits = ["nofile=10000:10000", "nproc=10000:10000"]\n'
        f'[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "{shutil.which("runc")}"\n'
    )
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "overlay"\nrunroot = "{folder}/run"\ngraphroot = "{folder}/graph"\n'
    )
    return {
        "CONTAINERS_CONF": str(folder / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
    }
