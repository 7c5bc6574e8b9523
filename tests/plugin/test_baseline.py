"""After an upgrade: what broke since the saved baseline is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from tests.plugin.running import Gate

import json
from pathlib import Path

SELECT = ("--vllm-profile=sim", "--vllm-check=profile")


def test_a_saved_baseline_is_compared_with(gate: Gate, pytester: pytest.Pytester) -> None:
    saved = Path(pytester.path) / "good.json"
    first = gate(*SELECT, "--vllm-save-baseline=good.json")
    second = gate(*SELECT, "--vllm-baseline=good.json")

    assert (first.exit, second.exit) == (0, 0)
    assert "nothing changed" in second.text

    body = json.loads(saved.read_text("utf-8"))
    body["profiles"]["sim"]["verdicts"]["profile.model.served"] = "fail"
    saved.write_text(json.dumps(body), "utf-8")
    third = gate(*SELECT, "--vllm-baseline=good.json")

    assert third.report["comparisons"][0]["fixed"] == ["profile.model.served"]
    assert "fixed" in third.text


def test_a_missing_baseline_is_one_clear_error(gate: Gate) -> None:
    run = gate(*SELECT, "--vllm-baseline=nowhere.json")

    assert run.exit == 4
    assert "there is no such file; save one first with --vllm-save-baseline=nowhere.json" in run.text
