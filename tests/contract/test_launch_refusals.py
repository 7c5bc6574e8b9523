"""A start that cannot be: one clear block each, and nothing left of it."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from pytest_vllm.launch.container import ContainerHandle
from pytest_vllm.launch.ports import free_port
from pytest_vllm.launch.protocol import BootError, LaunchContext
from pytest_vllm.launch.registry import launcher_for
from pytest_vllm.launch.wait import wait_ready
from pytest_vllm.profile.model import BootPart
from tests.launched.registry import registry
from tests.launched.stand import Stand, as_process

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = BootPart(timeout=60, stalled=60)
DOCKER = pytest.param("docker", marks=pytest.mark.docker)
PODMAN = pytest.param("podman", marks=pytest.mark.podman)

contained = pytest.mark.parametrize("stand", [DOCKER, PODMAN], indirect=True)


@contained
def test_fixed_port_is_the_published_one_and_taken_ports_are_told(stand: Stand) -> None:
    """`port` of the profile is the port of this machine; a second server there is refused clearly."""
    port = free_port()
    with stand.start(port=port) as handle:
        wait_ready(handle, PATIENCE)

        assert handle.url == f"http://127.0.0.1:{port}"
        with pytest.raises(BootError) as caught:
            stand.start(port=port)
    assert "could not start the container" in caught.value.what
    assert caught.value.means == "another program listens on that port"
    assert str(port) in " ".join(caught.value.evidence)


def test_taken_port_of_a_process_is_told(context: LaunchContext) -> None:
    """Before anything is started."""
    stand = as_process(context)
    with stand.start() as handle:
        boot = wait_ready(handle, PATIENCE)
        port = int(boot.url.rpartition(":")[2])
        with pytest.raises(BootError, match=f"port {port}, which the profile asks for, is in use"):
            stand.start(port=port)


@contained
def test_failed_start_leaves_no_container(stand: Stand) -> None:
    """Created, refused by the daemon, removed again; the fixture looks for it."""
    stand.server["command"] = ["no-such-program"]
    with pytest.raises(BootError) as caught:
        stand.start()

    assert caught.value.means == "the image, or this machine, has no vLLM under that name"


@pytest.mark.parametrize("stand", [DOCKER], indirect=True)
def test_missing_image_is_pulled_before_the_eyes(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the background, with lines that tell how far it is; what comes after it fails as ever.

    Also on a busy machine, which is slow to remove a container that has a status by then.
    """
    assert stand.engine is not None
    at_once = ContainerHandle._remember

    def slowly(handle: ContainerHandle, container: object) -> None:
        at_once(handle, container)
        time.sleep(0.5)

    monkeypatch.setattr(ContainerHandle, "_remember", slowly)
    with registry() as image:
        stand.server |= {"image": image, "command": ["no-such-program"]}
        try:
            with stand.start() as handle, pytest.raises(BootError) as caught:
                wait_ready(handle, PATIENCE)
        finally:
            stand.engine.client.images.remove(image, force=True)

    assert handle.logs()[0] == f"pulling {image}"
    assert handle.logs()[-1].startswith(f"pulling {image}: 1 of 1 layers")
    assert caught.value.what == "docker could not start the container"


@pytest.mark.parametrize("stand", [DOCKER], indirect=True)
@pytest.mark.parametrize(
    ("there", "means"),
    [
        (True, "the registry has no such image, or wants a login"),
        (False, "the registry cannot be reached from here"),
    ],
)
def test_refused_pull_is_told_in_the_daemons_words(stand: Stand, there: bool, means: str) -> None:
    """By a registry without the image, and by one that is not there."""
    with registry() as image:
        asked = image.replace("tiny", "none") if there else "127.0.0.1:1/none:1"
        stand.server["image"] = asked
        with stand.start() as handle, pytest.raises(BootError) as caught:
            wait_ready(handle, PATIENCE)

    assert caught.value.what == f"the image {asked} is not on this machine and docker could not pull it"
    assert caught.value.evidence
    assert caught.value.means == means
    assert not handle.alive()


@contained
def test_gpu_that_cannot_be_had_is_refused(stand: Stand) -> None:
    """By the engine, or by the proof inside when the engine takes the request and drops it."""
    stand.server["gpus"] = "all"
    with pytest.raises(BootError) as caught:
        stand.start()

    assert "GPU" in caught.value.means or "GPU" in caught.value.what


@pytest.mark.parametrize("stand", [PODMAN], indirect=True)
def test_gpus_seen_inside_are_kept_as_facts(stand: Stand, tmp_path: Path) -> None:
    """This Podman drops the request; what counts is what can be seen inside, here through a stand-in."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA GB10 (UUID: GPU-1)'\n")
    tool.chmod(0o755)
    stand.server["volumes"] = [*stand.server["volumes"], f"{tool}:/usr/bin/nvidia-smi:ro"]
    stand.server["gpus"] = 1
    with stand.start() as handle:
        assert handle.facts()["gpus"] == ["GPU 0: NVIDIA GB10 (UUID: GPU-1)"]
        assert handle.facts()["gpus-by"] == "cdi"
        container = handle.facts()["container-id"]

    assert not [p for p in psutil.process_iter(["cmdline"]) if container in (p.info["cmdline"] or ())]


def test_attach_to_nobody_fails_fast(context: LaunchContext) -> None:
    """Within five seconds, with the next step."""
    before = time.monotonic()
    with pytest.raises(BootError) as caught:
        Stand(launcher_for("attach"), context, {"url": "http://127.0.0.1:1"}).start()

    assert time.monotonic() - before < 5
    assert caught.value.what == "nothing answers at http://127.0.0.1:1"
    assert caught.value.try_


def test_missing_daemon_is_told(context: LaunchContext, tmp_path: Path) -> None:
    """One clear block, no traceback of docker-py."""
    environ = {**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    stand = Stand(launcher_for("docker"), dataclasses.replace(context, environ=environ), {"image": "x"})
    with pytest.raises(BootError) as caught:
        stand.start()

    assert caught.value.what == f"no container engine answers at unix://{tmp_path}/none.sock"
    assert caught.value.try_
