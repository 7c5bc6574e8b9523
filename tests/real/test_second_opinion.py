"""vLLM's own benchmark, run in the container that the gate booted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.real.gate import EVERYTHING, run_gate

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.docker]
KEY = "token-of-the-second-opinion-0123456789"


if EVERYTHING:

    def test_both_clients_are_told_of(image: str, tmp_path: Path) -> None:
        """The report has both clients' figures of one load, all answered, behind a key."""
        profile = tmp_path / "benched.toml"
        profile.write_text(
            f'extends = "cpu-smollm2"\n[server]\nimage = "{image}"\n'
            'api-key = { from-env = "BENCHED_KEY" }\n'
            "[measure]\nvllm-bench = true\n"
        )
        run = run_gate(tmp_path, f"--vllm-profile={profile}", "--vllm-check=models", BENCHED_KEY=KEY)

        (phase,) = [one for one in run.report["phases"] if one["name"] == "vllm bench serve"]
        told = phase["detail"]
        assert (told["completed"], told["answered"]) == (48, 48), told
        assert set(told["theirs"]) == set(told["ours"]) == {"ttft", "tpot", "itl", "aggregate-tok-s"}
        assert all(value > 0 for value in (*told["theirs"].values(), *told["ours"].values()))
        assert "medians of 48 of our requests and 48 of its" in " ".join(run.text.split())
        assert KEY not in run.text
        assert KEY not in json.dumps(run.report)
