"""Bystanders: things of others, which every test here must leave alone."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.launch import docker, engine, processes
from pytest_vllm.launch.protocol import LaunchContext
from tests.launched.engines import IMAGE, docker_or_skip, podman_service
from tests.reap.hosted import Hosted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


IDLE = [sys.executable, "-c", "import signal; signal.pause()"]


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of this machine within one test: runs beside it, and their sweeps, see a stranger's things."""
    name = f"{tmp_path.name}-{os.getpid()}"
    monkeypatch.setattr("pytest_vllm.launch.owner._host", lambda: name)
    return name


@pytest.fixture
def hosted(tmp_path: Path, machine: str, bystanders: None) -> Callable[[str, str], Hosted]:
    """Start a miniature run: `hosted(launcher, moment)`."""
    made: list[Hosted] = []

    def start(launcher: str, moment: str) -> Hosted:
        if launcher == "docker":
            docker_or_skip()
        folder = tmp_path / f"run{len(made)}"
        folder.mkdir()
        made.append(Hosted(launcher, moment, folder, f"{machine}-{len(made)}", machine))
        return made[-1]

    return start


@pytest.fixture
def bystanders(machine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A process of nobody, and one of a run that lives: this one. Both must live on."""
    theirs = LaunchContext("bystander", tmp_path_factory.mktemp("theirs"), os.getpid(), scope="bystander")
    plain = subprocess.Popen(IDLE, start_new_session=True)
    marked = subprocess.Popen(
        IDLE, start_new_session=True, env={**os.environ, **processes.marks(theirs, "bystander")}
    )
    yield
    ended = [process.poll() for process in (plain, marked)]
    for process in (plain, marked):
        process.kill()
        process.wait()
    assert ended == [None, None]


@pytest.fixture(scope="module")
def podman_url() -> Iterator[str]:
    """A Podman of this module's own."""
    with podman_service() as url:
        yield url


@pytest.fixture
def bystander_containers(machine: str, tmp_path: Path) -> Iterator[None]:
    """A container of nobody, and one of a run that lives. Both must run on."""
    one = docker.connect(docker_or_skip(), answer=20)
    theirs = LaunchContext("bystander", tmp_path, os.getpid(), scope="bystander")
    made = [
        one.client.containers.run(IMAGE, ["sleep", "600"], detach=True, labels=labels)
        for labels in ({"somebody": "else"}, engine.labels_for(theirs, "bystander"))
    ]
    try:
        yield
        for container in made:
            container.reload()
        assert [container.status for container in made] == ["running", "running"]
    finally:
        for container in made:
            container.remove(force=True)
        one.client.close()
