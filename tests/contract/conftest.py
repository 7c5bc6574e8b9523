"""Every launcher with a stand-in server, and the engines that some of them need."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.launch import engine, processes
from pytest_vllm.launch.protocol import LaunchContext
from tests.launched.engines import docker_or_skip, podman_service
from tests.launched.stand import Stand, as_container, as_process, as_simulator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def podman_url() -> Iterator[str]:
    """A Podman of this session's own."""
    with podman_service() as url:
        yield url


@pytest.fixture
def context(tmp_path: Path) -> LaunchContext:
    """Of a run whose owner is this process."""
    return LaunchContext("contract", tmp_path, os.getpid(), scope=f"contract-{tmp_path.name}-{os.getpid()}")


@pytest.fixture
def stand(request: pytest.FixtureRequest, context: LaunchContext) -> Iterator[Stand]:
    """The launcher of the parameter. Afterwards nothing of it may be left."""
    build = {
        "process": lambda: as_process(context),
        "sim": lambda: as_simulator(context),
        "docker": lambda: as_container("docker", docker_or_skip(), context),
        "podman": lambda: as_container("podman", request.getfixturevalue("podman_url"), context),
    }
    made = build[request.param]()
    yield made
    left = [p.pid for p, _ in processes.marked(lambda environ: environ.get(processes.SCOPE) == context.scope)]
    if made.engine is not None:
        containers = made.engine.containers(f"{engine.SCOPE}={context.scope}")
        left += [container.name for container in containers]
        for container in containers:
            container.remove(force=True)
        made.engine.client.close()
    assert left == []
