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


#: As slow as it may be by its floors; a loss is told from the last time alone.
SLOW = """
extends = "spark-fp8"

[limits]
decode-tok-s = { min = "1 tok/s" }

[limits.regression]
decode-tok-s = "5 %"
"""


def test_half_the_speed_of_the_last_time_is_no_go(gate: Gate) -> None:
    select = ("--vllm-profile=ours", "--vllm-launcher=sim", "--vllm-check=throughput.decode")
    first = gate(*select, "--vllm-save-baseline=good.json", files={"vllm-profiles/ours.toml": SLOW})
    same = gate(*select, "--vllm-baseline=good.json")
    slow = gate(*select, "--vllm-baseline=good.json", "--vllm-defect=performance.half-speed")

    assert (first.exit, same.exit, slow.exit) == (0, 0, 1), slow.text
    assert slow.verdicts["throughput.decode.floor"] == "fail"
    assert "allowed at least 0.95 times (" in " ".join(slow.text.split())


def test_a_loss_that_only_a_baseline_tells_is_not_judged_without_one(gate: Gate) -> None:
    profile = 'extends = "sim"\n[measure]\nrehearsal = "1s"\n[limits.regression]\nprefill-tok-s = "5 %"\n'
    run = gate(
        "--vllm-profile=ours", "--vllm-check=throughput.prefill", files={"vllm-profiles/ours.toml": profile}
    )

    assert run.verdicts["throughput.prefill.floor"] == "not-run"
    assert "there is no baseline: --vllm-baseline=FILE names one" in run.text.replace(
        "\n               ", " "
    )


def test_a_baseline_without_this_profile_is_no_go_ahead(gate: Gate) -> None:
    other = gate("--vllm-profile=sim", "--vllm-check=models", "--vllm-save-baseline=other.json")
    run = gate(
        "--vllm-profile=ours",
        "--vllm-launcher=sim",
        "--vllm-check=throughput.decode.floor",
        "--vllm-baseline=other.json",
        "--vllm-defect=performance.half-speed",
        files={"vllm-profiles/ours.toml": SLOW},
    )

    assert (other.exit, run.exit) == (0, 4), run.text
    assert "other.json is of sim, this run of ours: nothing would be compared" in run.text
