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


#: Serves until its input ends, which it does when the tests end, in whatever way; then takes all down.
KEEPER = """
exec > "$1/service.log" 2>&1
podman system service --time=0 "unix://$1/podman.sock" &
cat
podman rm --all --force --time=0
podman rmi --all --force
kill $!; wait $!
umount "$1/graph/overlay"
rm -rf "$1"
"""


@contextmanager
def podman_service() -> Iterator[str]:
    """The URL of a Podman of our own, with a storage of its own that holds the test image.

    A process beside the tests takes it down: its mounts outlive no test run, not even one that is killed.
    """
    for program in ("podman", "runc"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    docker_or_skip()
    # a short path: sockets may not have long ones
    folder = Path(tempfile.mkdtemp(prefix="pv-"))
    env = {**os.environ, **_configuration(folder)}
    keeper = ["sh", "-c", KEEPER, "sh", str(folder)]
    with subprocess.Popen(keeper, env=env, stdin=subprocess.PIPE, start_new_session=True):
        _load(env)
        socket = folder / "podman.sock"
        until(socket.exists, "podman's socket")
        yield f"unix://{socket}"


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
