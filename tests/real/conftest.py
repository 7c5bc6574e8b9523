"""A real vLLM in a container, and runs of the gate against it.

They take minutes and a Docker daemon, so they run only when asked: `PYTEST_VLLM_REAL=1 pytest tests/real`.
With `PYTEST_VLLM_REAL=all` also what takes long and CI shows otherwise: loads on attached servers, and other
versions of vLLM.

Two processes may share them file by file, `-n 2 --dist loadfile`.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real.gate import GateRun, run_gate
from tests.real.server import IMAGE, HandStarted, containers

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def image() -> str:
    """The image of a real vLLM for the CPU."""
    if not os.environ.get("PYTEST_VLLM_REAL"):
        pytest.skip("starts a real vLLM, minutes each: asked for with PYTEST_VLLM_REAL=1")
    if lacks := what_is_lacking():
        pytest.fail(lacks)
    return IMAGE


@pytest.fixture(scope="session")
def gate_on_container(image: str, tmp_path_factory: pytest.TempPathFactory) -> GateRun:
    """One run of the whole gate on `cpu-smollm2`; CI hands over the run it has just made."""
    made = os.environ.get("PYTEST_VLLM_GATE_REPORT")
    if made:
        return GateRun.of_folder(Path(made))
    return run_gate(tmp_path_factory.mktemp("container"), "--vllm-profile=cpu-smollm2")


@pytest.fixture(scope="session")
def by_hand(image: str) -> Iterator[HandStarted]:
    """A server that a person started with `docker run`, and that only this fixture ends."""
    before = containers()
    with HandStarted(image) as server:
        yield server
    assert containers() <= before


def what_is_lacking() -> str:
    """Why no real vLLM can be started here, and what to do; empty when it can."""
    answer = subprocess.run(
        ["docker", "image", "inspect", IMAGE], capture_output=True, text=True, check=False
    )
    if answer.returncode == 0:
        return ""
    if "No such image" in answer.stderr:
        return f"no image {IMAGE}: python -m tests.real.image"
    return f"no Docker daemon answers: {answer.stderr.strip()}"
