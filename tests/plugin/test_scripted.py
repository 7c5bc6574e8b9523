"""The rehearsal of the scripted engine, and its parsers by option, as a person runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.running import Gate


def test_a_profile_runs_the_checks_that_it_is_about(gate: Gate) -> None:
    run = gate("--vllm-profile=sim-scripted", "--collect-only", "-q")

    assert run.exit == 0
    assert "suites/scripted/test_answers.py" in run.text
    assert "suites/chat" not in run.text


def test_a_check_that_is_asked_for_runs_whatever_the_profile_is_about(gate: Gate) -> None:
    run = gate("--vllm-profile=sim-scripted", "--vllm-check=models.list", "--vllm-check=scripted.choices")

    assert run.exit == 0, run.text
    assert run.verdicts["scripted.choices.all"] == "pass"
    assert any(check.startswith("models.list") for check in run.verdicts)


def test_scripts_are_said_on_the_simulator(gate: Gate) -> None:
    run = gate("--vllm-profile=sim-scripted", "--vllm-check=scripted.turn", "--vllm-check=scripted.form")

    assert run.exit == 0, run.text
    assert set(run.verdicts.values()) == {"pass"}


def test_faults_of_the_real_server_are_not_missed_in_its_rehearsal(gate: Gate) -> None:
    run = gate("--vllm-profile=cpu-scripted", "--vllm-launcher=sim", "--vllm-check=scripted.stop")

    assert run.exit == 0, run.text
    assert set(run.verdicts.values()) == {"pass"}


def test_a_defect_of_a_known_text_is_named(gate: Gate) -> None:
    run = gate(
        "--vllm-profile=sim-scripted",
        "--vllm-defect=scripted.talk-silences",
        "--vllm-check=scripted.turn",
    )

    assert run.exit == 1
    assert run.verdicts["scripted.turn.second"] == "fail"
    assert "content '', not 'It is cold.'" in run.text


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (
            "--vllm-tool-parser=hermess",
            ["unknown tool parser 'hermess' in vLLM", "did you mean 'hermes'"],
        ),
        ("--vllm-reasoning-parser=qwen33", ["unknown reasoning parser 'qwen33'", "did you mean 'qwen3'"]),
    ],
)
def test_a_parser_that_is_not_there_is_refused(gate: Gate, option: str, words: list[str]) -> None:
    run = gate("--vllm-profile=sim", option)

    assert run.exit == 4
    assert [word for word in words if word not in run.text] == []
    assert "Traceback" not in run.text


def test_parsers_from_the_ini_file(gate: Gate) -> None:
    ini = "[pytest]\nvllm_reasoning_parser = none\n"
    run = gate("--vllm-profile=sim", "--vllm-check=models.list", files={"pytest.ini": ini})

    assert run.exit == 0, run.text
    assert "server args: no reasoning-parser" in str(run.report["servers"])


def test_checks_of_scripted_servers_are_left_out_for_others(gate: Gate) -> None:
    run = gate("--vllm-profile=sim", "suites/scripted/test_cuts.py")

    assert run.exit == 5, run.text
    assert "these checks ask a scripted server: --vllm-profile=cpu-scripted" in run.text
