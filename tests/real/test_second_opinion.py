"""vLLM's own benchmark, run in the container that the gate booted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.gate import run_gate

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.docker]


def test_both_clients_are_told_of(image: str, tmp_path: Path) -> None:
    """The report has both clients' figures of one load, and all of its requests were answered."""
    profile = tmp_path / "benched.toml"
    profile.write_text(
        f'extends = "cpu-smollm2"\n[server]\nimage = "{image}"\n[measure]\nvllm-bench = true\n'
    )
    run = run_gate(tmp_path, f"--vllm-profile={profile}", "--vllm-check=models")

    (phase,) = [one for one in run.report["phases"] if one["name"] == "vllm bench serve"]
    told = phase["detail"]
    assert told["completed"] == 48, told
    assert set(told["theirs"]) == set(told["ours"]) == {"ttft", "tpot", "aggregate-tok-s"}
    assert all(value > 0 for value in (*told["theirs"].values(), *told["ours"].values()))
