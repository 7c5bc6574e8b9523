"""The scripted engine inside a real vLLM: it says what it is told, and the gate names vLLM's known faults.

In a container by default. `PYTEST_VLLM_PYTHONS` lists Pythons that have vLLM for the CPU, separated as PATH
is: each is booted as a process and held to the same checks.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_vllm.decide.waivers import covers, in_range
from pytest_vllm.profile.load import load
from tests.real.gate import GateRun, run_gate

pytestmark = pytest.mark.real

#: The full set of one parser, recorded on two cores that do nothing else, in seconds.
RECORDED_WITHIN_S = 60.0
PYTHONS = [one for one in os.environ.get("PYTEST_VLLM_PYTHONS", "").split(os.pathsep) if one]


@pytest.fixture(scope="module")
def in_a_container(image: str, tmp_path_factory: pytest.TempPathFactory) -> GateRun:
    """One run of the scripted gate; CI hands over the run that it has just made."""
    made = os.environ.get("PYTEST_VLLM_SCRIPTED_REPORT")
    if made:
        return GateRun.of_folder(Path(made))
    return run_gate(tmp_path_factory.mktemp("scripted"), "--vllm-profile=cpu-scripted")


def waived(run: GateRun) -> set[str]:
    """The checks of a run that fail as a waiver says."""
    return {check for check, verdict in run.verdicts.items() if verdict == "waived"}


@pytest.mark.docker
def test_the_container_says_what_it_is_told(in_a_container: GateRun) -> None:
    """GO, on a real vLLM, by hundreds of checks."""
    assert in_a_container.answer == "GO", in_a_container.reasons("fail", "undecided")
    (server,) = in_a_container.report["servers"]
    assert (server["version"], server["simulated"]) == ("0.32.0", False)
    assert list(in_a_container.verdicts.values()).count("pass") > 400


@pytest.mark.docker
def test_the_known_faults_are_all_there_and_no_others(in_a_container: GateRun, tmp_path: Path) -> None:
    """Every fault that the profile waives is met, with its evidence."""
    known = [one for one in load("cpu-scripted", tmp_path).waive if in_range("0.32.0", one.versions)]
    met = {check for check in waived(in_a_container) if check.startswith("scripted.")}

    assert [one.check for one in known if not any(covers(one, check) for check in met)] == []
    assert [check for check in met if not any(covers(one, check) for one in known)] == []


@pytest.mark.docker
def test_it_is_quick(in_a_container: GateRun) -> None:
    """Recording the scripts of one parser takes a minute, or what the server takes on a slow machine."""
    (recorded,) = [one for one in in_a_container.report["phases"] if one["name"] == "record"]

    assert recorded["seconds"] <= RECORDED_WITHIN_S or recorded["detail"]["within_bound"], recorded["detail"]


@pytest.mark.docker
def test_the_folder_of_the_model_is_gone(image: str, tmp_path: Path) -> None:
    """What was made for the start is removed with the server."""
    del image
    run = run_gate(tmp_path, "--vllm-profile=cpu-scripted", "--vllm-check=scripted.choices")

    assert run.exit == 0, run.text
    assert list(tmp_path.glob("**/model.safetensors")) == []


if PYTHONS:

    @pytest.mark.parametrize("python", PYTHONS)
    def test_every_version_says_what_it_is_told(python: str, tmp_path: Path) -> None:
        """The processor works in this vLLM: nothing fails but what the profile knows of."""
        run = run_gate(tmp_path, "--vllm-profile=cpu-scripted-process", VLLM_PYTHON=python)

        assert run.exit == 0, run.text
