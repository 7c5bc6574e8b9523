"""Somebody's client as a program: its report, its end, its environment, what it leaves behind."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.run.clients import Places, at_fault, command, environment, freed, performed, reached
from pytest_vllm.wire.recording import Recording, Request

if TYPE_CHECKING:
    from pathlib import Path

REPORT = {"version": "1.0", "missing": "", "steps": {"chat": {"passed": True, "error": "", "seconds": 0.1}}}


def program(folder: Path, text: str) -> list[str]:
    """A script and how it is called."""
    script = folder / "client.py"
    script.write_text(text, "utf-8")
    return [sys.executable, str(script)]


def environ(folder: Path) -> dict[str, str]:
    """The environment of a client whose home is a new folder."""
    home = folder / "home"
    home.mkdir()
    return environment(home, Places(), "http://127.0.0.1:1")


def test_what_a_program_prints_last_is_its_report(tmp_path: Path) -> None:
    words = program(tmp_path, f"print('noise')\nprint({json.dumps(json.dumps(REPORT))})")

    found = performed(words, {}, environ(tmp_path), 30)

    assert (found.version, found.steps, found.ended) == ("1.0", REPORT["steps"], "")


def test_a_program_that_crashes_reports_how(tmp_path: Path) -> None:
    words = program(tmp_path, "raise SystemError('broken wheel')")

    found = performed(words, {}, environ(tmp_path), 30)

    assert "status 1" in found.ended
    assert "broken wheel" in found.ended
    assert not found.late


def test_what_does_not_end_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    child = "import time; time.sleep(600)"
    text = (
        "import pathlib, subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True)\n"
        f"pathlib.Path({str(mark)!r}).write_text(str(child.pid))\ntime.sleep(600)"
    )

    found = performed(program(tmp_path, text), {}, environ(tmp_path), 3)

    assert found.late
    state = _state(int(mark.read_text()))
    assert state in ("", "Z"), f"the child's state is {state}"


def _state(pid: int) -> str:
    """The state of a process by its letter; empty when there is none."""
    try:
        with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123 - no path of a file
            return stat.read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


def test_its_task_comes_on_standard_input(tmp_path: Path) -> None:
    text = (
        "import json, sys\ntask = json.load(sys.stdin)\n"
        "print(json.dumps({'version': task['key'], 'missing': '', 'steps': {}}))"
    )

    assert performed(program(tmp_path, text), {"key": "secret"}, environ(tmp_path), 30).version == "secret"


def test_nothing_of_the_persons_environment_reaches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-persons-own-key-1")
    monkeypatch.setenv("HF_TOKEN", "hf_aPersonsOwnToken12345")

    found = environ(tmp_path)

    assert not {"OPENAI_API_KEY", "HF_TOKEN"} & set(found)
    assert found["HOME"].startswith(str(tmp_path))
    assert found["HTTPS_PROXY"] == "http://127.0.0.1:1"


def test_packages_are_looked_for_where_the_variable_says(tmp_path: Path) -> None:
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").touch()
    (tmp_path / "npm" / "node_modules").mkdir(parents=True)
    folders = os.pathsep.join([str(tmp_path / "npm"), str(tmp_path / "venv")])

    places = Places.of({"PYTEST_VLLM_CLIENTS": folders})

    assert places.python == str(tmp_path / "venv" / "bin" / "python")
    assert places.modules == str(tmp_path / "npm")
    assert places.path.startswith(str(tmp_path / "npm" / "bin"))


def test_without_it_this_python_is_taken_and_scripts_for_node_have_a_reason(tmp_path: Path) -> None:
    places = Places.of({})

    assert places.python == sys.executable
    assert command(tmp_path / "a.py", places) == [sys.executable, str(tmp_path / "a.py")]
    assert isinstance(command(tmp_path / "a.mjs", places), str)


@pytest.mark.parametrize(("sent", "passed"), [([10.5], False), ([9.0, 12.0], None), ([], None)])
def test_a_step_that_failed_before_it_asked_anything_accuses_nobody(
    sent: list[float], passed: bool | None
) -> None:
    step = {"passed": False, "error": "TypeError", "began": 10.0, "seconds": 1.0}
    recorded = [Recording("a", Request("POST", "/v1/responses"), 200, sent=at) for at in sent]

    assert reached(step, recorded)["passed"] is passed


@pytest.mark.parametrize(
    ("statuses", "fault"),
    [([200, 400], False), ([400], True), ([200, 500], True), ([200, None], True), ([], False)],
)
def test_a_free_model_is_not_the_servers_fault(statuses: list[int | None], fault: bool) -> None:
    sent = [Recording("a", Request("POST", "/v1/responses"), status) for status in statuses]

    assert at_fault(sent) is fault


def test_what_a_free_model_led_an_agent_to_is_not_judged() -> None:
    assert freed({"passed": False, "error": "status 1"})["passed"] is None
    assert freed({"passed": True, "error": ""})["passed"] is True
