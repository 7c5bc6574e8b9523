"""Containers that do not come up: exit status 20, the cause by name, nothing left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.gate import run_gate
from tests.real.server import containers

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.docker]

TOO_LITTLE_SHARED_MEMORY = """
extends = "cpu-smollm2"

[server]
shm = "64m"
"""

CONTEXT_TOO_LONG = """
extends = "cpu-smollm2"

[server.args]
max-model-len = 1000000
"""

ENDS_AT_ONCE = """
extends = "cpu-smollm2"

[server]
entrypoint = ["/bin/sh", "-c", "echo 'the licence has expired' >&2; exit 7"]
"""


@pytest.mark.parametrize(
    ("profile", "cause"),
    [
        (TOO_LITTLE_SHARED_MEMORY, "Insufficient space in /dev/shm"),
        (CONTEXT_TOO_LONG, "max_model_len"),
        (ENDS_AT_ONCE, "the licence has expired"),
    ],
    ids=["shared-memory", "context", "ends-at-once"],
)
def test_the_cause_is_named(image: str, tmp_path: Path, profile: str, cause: str) -> None:
    """The block shows the line of the log that is to blame, not the last traceback line."""
    before = containers()
    (tmp_path / "broken.toml").write_text(profile, "utf-8")

    run = run_gate(tmp_path, "--vllm-profile=broken.toml")

    assert run.exit == 20, run.text
    assert cause in run.text.partition("did not boot")[2]
    assert containers() <= before


def test_an_image_that_is_nowhere(image: str, tmp_path: Path) -> None:
    """A pull that is refused is one clear block."""
    del image
    run = run_gate(tmp_path, "--vllm-profile=cpu-smollm2", "--vllm-image=pytest-vllm/nowhere:1")

    assert run.exit == 20, run.text
    assert "pytest-vllm/nowhere:1" in run.text.partition("did not boot")[2]
