"""Real clients in a run: only where wanted, by name where missing, judged again in a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.running import Gate

PROFILE = """
extends = "sim"
[server]
api-key = { from-env = "GATE_KEY" }
[expect]
clients = [%s]
checks = ["models.list"]
"""
KEY = "sk-key-of-the-server-4711"
CHECK = "clients.works[%s]"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATE_KEY", KEY)
    monkeypatch.delenv("PYTEST_VLLM_CLIENTS", raising=False)


def profile(*clients: str) -> dict[str, str]:
    """The file of a profile that expects these."""
    return {"mine.toml": PROFILE % ", ".join(f'"{name}"' for name in clients)}


def test_an_expected_client_runs_beside_what_the_profile_is_about(gate: Gate) -> None:
    run = gate("--vllm-profile=mine.toml", files=profile("openai-python"))

    assert run.exit == 0, run.text
    assert run.verdicts[CHECK % "openai-python"] == "pass"
    assert any(check.startswith("models.list") for check in run.verdicts)
    row = next(one for one in run.report["results"] if one["check"] == CHECK % "openai-python")
    assert row["observations"]["verdict"] == "works"
    kept = list((run.folders[-1] / "mine" / "clients").glob("clients.openai-python.*"))
    assert len(kept) > 8
    assert not [one for one in run.folders[-1].rglob("*") if one.is_file() and KEY in one.read_text("utf-8")]

    again = gate(f"--vllm-replay={run.folders[-1]}")

    assert again.verdicts[CHECK % "openai-python"] == "pass", again.text


def test_without_an_expectation_no_client_runs(gate: Gate) -> None:
    run = gate("--vllm-profile=sim", "--vllm-check=models.list")

    assert run.exit == 0, run.text
    assert "clients" not in [phase["name"] for phase in run.report["phases"]]
    assert not list(run.folders[-1].rglob("clients"))


def test_an_expected_client_that_is_missing_is_no_go_by_its_name(gate: Gate) -> None:
    run = gate("--vllm-profile=mine.toml", files=profile("openai-node"))

    assert run.exit == 1, run.text
    assert run.verdicts[CHECK % "openai-node"] == "fail"
    assert "the profile expects openai-node, and it could not be run" in run.text


def test_one_that_is_asked_for_and_missing_is_not_run_by_its_name(gate: Gate) -> None:
    run = gate("--vllm-profile=sim", "--vllm-check=clients.works[openai-node]", "--vllm-check=models.list")

    assert run.verdicts[CHECK % "openai-node"] == "not-run"
    assert "openai-node was not run" in run.text


def test_an_unknown_client_is_refused_with_the_nearest(gate: Gate) -> None:
    run = gate("--vllm-profile=mine.toml", files=profile("openai-pyton"))

    assert run.exit == 4
    assert "openai-python" in run.text


def test_a_server_that_lacks_what_a_step_needs_is_a_limit(gate: Gate) -> None:
    text = 'extends = "sim"\n[server.args]\nenable-auto-tool-choice = false\n[expect]\ncapabilities = []\n'
    run = gate(
        "--vllm-profile=bare.toml", "--vllm-check=clients.works[openai-python]", files={"bare.toml": text}
    )

    row = run.report["results"][0]
    assert row["verdict"] == "pass", run.text
    assert row["observations"]["verdict"].startswith("works with limits: tools (the server has no tools)")
