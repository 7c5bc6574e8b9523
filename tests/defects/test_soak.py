"""What shows only under load for long is caught in the soak tier, and a healthy server passes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.sim.defects.registry import all_defects
from tests.real.gate import run_gate

if TYPE_CHECKING:
    from pathlib import Path

AREA = "soak"
DEFECTS = {name: one for name, one in all_defects().items() if one.area == AREA}
PROFILE = """
extends = "sim"
[server.args]
num-gpu-blocks-override = 4000
enable-sleep-mode = true
[server.env]
VLLM_SERVER_DEV_MODE = "1"
[measure]
rehearsal = "2500ms"  # of which a soak takes four: shorter, a busy host decides nothing of what grows
"""
#: Words of a verdict that mean: not as it should be.
CAUGHT = ("fail", "advisory")

pytestmark = pytest.mark.matrix


def verdicts(folder: Path, *defects: str) -> dict[str, str]:
    """What every check of the area says, by id, in a run of its own."""
    folder.mkdir(exist_ok=True)
    profile = folder / "soaked.toml"
    profile.write_text(PROFILE, "utf-8")
    options = [f"--vllm-profile={profile}", "--vllm-tier=soak", f"--vllm-check={AREA}"]
    run = run_gate(folder, *options, *(f"--vllm-defect={name}" for name in defects))
    return {row["check"]: row["verdict"] for row in run.report["results"]}


def test_a_healthy_server_passes(tmp_path: Path) -> None:
    """All checks pass; none is undecided or left out."""
    assert set(verdicts(tmp_path).values()) == {"pass"}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_caught_by_the_checks_it_names(name: str, tmp_path: Path) -> None:
    """And by no other."""
    found = verdicts(tmp_path, name)

    assert {check for check, verdict in found.items() if verdict in CAUGHT} == set(DEFECTS[name].catches)


def test_every_check_has_a_defect(tmp_path: Path) -> None:
    """What nothing breaks proves nothing."""
    assert set(verdicts(tmp_path)) == {check for one in DEFECTS.values() for check in one.catches}
