"""A real vLLM that dies while it is verified, and a gate that is killed."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.real.gate import EVERYTHING, begun, run_gate
from tests.real.server import containers

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.docker]

#: The image has no compiler. With compilation on, its vLLM comes up, is healthy, generates, and loses its
#: engine to the first request that asks for log probabilities.
NO_COMPILER = """
extends = "cpu-smollm2"

[server.env]
TORCH_COMPILE_DISABLE = "0"
"""

LONGEST_BOOT_S = 300.0


def test_an_engine_that_dies_is_a_no_go(image: str, tmp_path: Path) -> None:
    """A healthy server whose engine dies at a request is NO-GO by one finding, which says why."""
    before = containers()
    (tmp_path / "no-compiler.toml").write_text(NO_COMPILER, "utf-8")

    asked = (
        "--vllm-check=logprobs.chat",
        "--vllm-check=logprobs.answered",
        "--vllm-check=profile.server.stays-up",
    )
    run = run_gate(tmp_path, "--vllm-profile=no-compiler.toml", *asked)

    assert run.exit == 1, run.text
    failed = run.reasons("fail")
    assert set(failed) == {"profile.server.stays-up"}
    assert "there is no C or C++ compiler" in failed["profile.server.stays-up"]
    (log,) = tmp_path.glob(".vllm/runs/*/no-compiler/server.log")
    assert "No working C++ compiler" in log.read_text("utf-8")
    assert containers() <= before


@pytest.mark.parametrize("moment", ["boot", "record"] if EVERYTHING else ["boot"])
def test_kill_9_leaves_nothing(image: str, tmp_path: Path, moment: str) -> None:
    """Killed while a real vLLM loads or is recorded: its container goes, a bystander's stays."""
    before = containers()
    output = tmp_path / "output.txt"
    with output.open("w") as file:
        gate = begun(tmp_path, file, "--vllm-profile=cpu-smollm2")
    try:
        wait_until(lambda: f"vllm: {moment}" in output.read_text("utf-8") and containers() != before, gate)
    finally:
        os.kill(gate.pid, signal.SIGKILL)
        gate.wait()

    wait_until(lambda: containers() <= before)


def wait_until(holds: Callable[[], bool], gate: subprocess.Popen[str] | None = None) -> None:
    """Wait for a condition; fails when the gate has ended or nothing happens."""
    deadline = time.monotonic() + LONGEST_BOOT_S
    while not holds():
        assert gate is None or gate.poll() is None, "the gate ended before that moment"
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.1)
