"""What a client's own parser stumbles over is caught by that client, and a healthy server passes it."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.run.clients import Places
from pytest_vllm.sim.defects.registry import all_defects
from tests.real.gate import run_gate

if TYPE_CHECKING:
    from pathlib import Path

AREA, PROFILE = "clients", "sim-clients"
DEFECTS = {name: one for name, one in all_defects().items() if one.area == AREA}
#: Defects that openai's client, which is always here, does not see: the client that does, and its module.
OTHERS = {"clients.message-uncounted": ("anthropic-python", "anthropic")}

pytestmark = pytest.mark.matrix


def verdicts(folder: Path, client: str, *defects: str) -> dict[str, str]:
    """What the check says of a client, in a run of its own."""
    folder.mkdir(exist_ok=True)
    asked = (f"--vllm-profile={PROFILE}", f"--vllm-check=clients.works[{client}]")
    run = run_gate(folder, *asked, *(f"--vllm-defect={name}" for name in defects))
    return {row["check"]: row["verdict"] for row in run.report["results"]}


def installed(module: str) -> bool:
    """Whether the Python that runs clients has a module."""
    python = Places.of(os.environ).python
    return (
        subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0
    )


def test_a_healthy_server_passes(tmp_path: Path) -> None:
    assert verdicts(tmp_path, "openai-python") == {"clients.works[openai-python]": "pass"}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_client_stumbles_over_the_defect(name: str, tmp_path: Path) -> None:
    client, module = OTHERS.get(name, ("openai-python", "openai"))
    if not installed(module):
        pytest.skip(f"{client} is not installed here: pip install {module}")

    assert verdicts(tmp_path, client, name) == {f"clients.works[{client}]": "fail"}
