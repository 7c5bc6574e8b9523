"""Two servers in one run: the older one is judged silently, and never stopped where it is not ours."""

from __future__ import annotations

import json
import socket
import sys
import urllib.request
from typing import TYPE_CHECKING

import jsonschema
import pytest

from pytest_vllm.cli.entry import main
from pytest_vllm.report.json_report import schema
from pytest_vllm.sim.inprocess import Simulated

if TYPE_CHECKING:
    from tests.plugin.running import Gate

CHECKS = ("--vllm-check=models", "--vllm-check=metrics")
SIM = ("--vllm-profile=sim", *CHECKS)
#: Breaks one check of `models` (`pytest-vllm defects --area models`).
DEFECT = "models.twice"
DIES = """
from dataclasses import replace
from pytest_vllm.run import gate

real = gate.recorded

def recorded(booted, state, demand):
    state = real(booted, state, demand)
    return replace(state, died="it ended") if booted.profile.name == "sim-before" else state

gate.recorded = recorded
"""
OTHER = {"vllm-profiles/other.toml": 'extends = "sim"\n[server]\nmodel = "other"\n'}
BROKEN = {"vllm-profiles/broken.toml": f'extends = "sim"\ndefects = ["{DEFECT}"]\n'}


def test_two_equal_servers_show_nothing_beyond_information_and_nothing_is_left_of_the_older(
    gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    run = gate(*SIM, "--vllm-against=sim", "--vllm-no-worse", "--junitxml=junit.xml")
    folder = run.folders[-1]

    assert run.exit == 0, run.text
    assert {row["weight"] for row in run.report["against"]["differences"]} <= {"for information"}
    assert "Nothing breaks clients" in run.text
    assert {row["profile"] for row in run.report["results"]} == {"sim"}
    assert len(run.report["results"]) == len(run.verdicts)
    jsonschema.validate(run.report, schema())
    assert list(json.loads((folder / "run.json").read_text("utf-8"))["servers"]) == ["sim"]
    assert [one.name for one in (folder.parents[1] / "history").iterdir()] == ["sim"]
    assert "Compared with the older server" in (folder / "report.html").read_text("utf-8")
    assert "Compared with" in (folder / "report.md").read_text("utf-8")
    assert (folder.parents[2] / "junit.xml").read_text("utf-8").count("<testcase") == len(run.verdicts) + sum(
        one["outcome"] != "" for one in run.report["own_tests"]
    )
    capsys.readouterr()
    assert main(["compare", str(folder / "sim-before"), str(folder)]) == 0


def test_what_broke_is_named_and_what_was_broken_before_does_not_count(gate: Gate) -> None:
    broke = gate(*SIM, f"--vllm-defect={DEFECT}", "--vllm-against=sim", "--vllm-no-worse")
    both = gate(*SIM, f"--vllm-defect={DEFECT}", "--vllm-against=broken", "--vllm-no-worse", files=BROKEN)
    strictly = gate(*SIM, f"--vllm-defect={DEFECT}", "--vllm-against=broken")
    fixed = gate(*SIM, "--vllm-against=broken")

    assert (broke.exit, both.exit, strictly.exit, fixed.exit) == (1, 0, 1, 0)
    assert "broken MUST models.list.unique: pass → fail" in broke.text
    assert both.verdicts["models.list.unique"] == "waived"
    changes = [row["change"] for row in fixed.report["against"]["differences"] if row["area"] == "verdicts"]
    assert changes == ["fixed", "fixed"], "models.list.unique, and models.every.once of all lists"
    assert "1 failed" not in fixed.text


def test_an_own_check_is_judged_on_both_and_an_own_test_on_the_one_under_test(gate: Gate) -> None:
    own = """
from pytest_vllm import MUST, check

@check("own.ours.model", MUST, spec="profile:expect")
def test_ours(models_list):
    \"\"\"The list names a model.\"\"\"
    assert models_list.ok["data"]

def test_not_a_check(vllm_server):
    print("asked", vllm_server.profile)
"""
    run = gate("--vllm-profile=sim", "--vllm-against=sim", "-s", "test_own.py", files={"test_own.py": own})

    assert run.exit == 0, run.text
    assert run.text.count("asked sim") == 1
    assert run.report["against"]["before"]["profile"] == "sim-before"


def test_a_slower_server_is_found_and_neither_is_stopped(gate: Gate) -> None:
    profile = 'extends = "sim"\n[measure]\nbudget = "12s"\n'
    files = {"vllm-profiles/ours.toml": profile}
    arguments = ("sim-model", "--max-num-seqs", "8", "--max-model-len", "4096")
    with (
        Simulated([*arguments, "--sim-step", "0.01"]) as older,
        Simulated([*arguments, "--sim-step", "0.0112"]) as newer,
    ):
        run = gate(
            "--vllm-profile=ours",
            f"--vllm-url={newer.url}",
            f"--vllm-against-url={older.url}",
            "--vllm-check=throughput.decode",
            "--vllm-no-worse",
            files=files,
        )
        for one in (older, newer):
            with urllib.request.urlopen(f"{one.url}/health", timeout=10) as answer:  # noqa: S310 - our own
                assert answer.status == 200

    speeds = {row["figure"]: row["change"] for row in run.report["against"]["speeds"]}
    assert speeds["decode-tok-s"] == "slower", run.text
    assert run.exit == 1
    said = " ".join(run.text.split())
    assert "worse than the older server: decode-tok-s of throughput.decode is slower" in said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ("--vllm-url=http://127.0.0.1:9", "--vllm-against-url=http://localhost:9/v1/"),
            "is the server under test itself",
        ),
        (("--vllm-replay=.", "--vllm-against-url=http://127.0.0.1:9"), "leave one of them out"),
        (("--vllm-against-url=http://127.0.0.1:9",), "name the one under test too"),
        ((*SIM, "--vllm-against=sim", "-n2"), "run without -n"),
        ((*SIM, "--vllm-against=sim", "--vllm-against-image=a:b"), "name two older servers"),
        ((*SIM, "--vllm-against=sim", "--vllm-baseline=last-good"), "leave one of them out"),
        ((*SIM, "--vllm-profile=sim-lora", "--vllm-against=sim"), "run it once for each profile"),
        (("--vllm-url=http://127.0.0.1:9", "--vllm-against-image=a:b"), "attach starts no image"),
        ((*SIM, "--vllm-against=other"), "two models are not compared"),
        ((*SIM, "--vllm-against=nowhere"), "nowhere"),
        ((*SIM, "--vllm-against-url=nowhere:port"), "--vllm-against-url"),
    ],
    ids=lambda value: "" if isinstance(value, tuple) else str(value),
)
def test_what_cannot_be_compared_is_one_clear_error(gate: Gate, given: tuple[str, ...], said: str) -> None:
    run = gate(*given, files=OTHER)

    assert run.exit == 4, run.text
    assert said in " ".join(run.text.split())
    assert "Traceback" not in run.text


def test_an_older_server_that_does_not_answer_says_so_with_the_next_step(gate: Gate) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        run = gate(*SIM, f"--vllm-against-url={url}")

    assert run.exit == 4, run.text
    assert "the older server, sim-before, did not answer, so nothing is compared" in run.text
    assert "what it means:" in run.text
    assert f"try: curl -v {url}/health" in run.text


def test_a_server_under_test_that_does_not_answer_is_said_before_the_older_one_is_asked(gate: Gate) -> None:
    with socket.socket() as taken, Simulated(["sim-model"]) as older:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        run = gate(f"--vllm-url={url}", f"--vllm-against-url={older.url}", *CHECKS)

    assert run.exit == 20, run.text
    assert "the older server first" not in run.text


def test_own_tests_alone_leave_nothing_to_compare(gate: Gate) -> None:
    own = "def test_it(vllm_server):\n    assert vllm_server.url\n"
    run = gate("--vllm-profile=sim", "--vllm-against=sim", "test_own.py", files={"test_own.py": own})

    assert run.exit == 0, run.text
    assert "no check was selected, so nothing was asked of it" in " ".join(run.text.split())


def test_an_older_server_that_dies_shows_nothing_and_no_worse_is_undecided(gate: Gate) -> None:
    run = gate(*SIM, "--vllm-against=sim", "--vllm-no-worse", files={"conftest.py": DIES})

    assert run.exit == 21, run.text
    said = " ".join(run.text.split())
    assert "no worse than the older server is not shown: sim-before: it ended" in said
    assert run.report["against"] is None


def test_a_scripted_image_of_another_version_shows_what_changed_for_clients(gate: Gate) -> None:
    run = gate(
        "--vllm-profile=sim",
        "--vllm-check=errors",
        "--vllm-check=metrics",
        "--vllm-against-image=vllm/vllm-openai:v0.27.0",
    )
    versions = [run.report["against"][side]["version"] for side in ("before", "after")]

    assert versions == ["0.27.0", "0.32.0"]
    assert run.report["against"]["answer"]["breaks"]
    assert "Breaks clients: 1" in run.text


def test_servers_that_share_a_machine_are_started_one_after_the_other(gate: Gate) -> None:
    command = json.dumps([sys.executable, "-m", "pytest_vllm.sim", "serve"])
    profile = f'extends = "sim"\n[server]\nlauncher = "process"\ncommand = {command}\n'
    beside = profile.replace("[server]\n", "[server]\nside-by-side = true\n")
    files = {"vllm-profiles/ours.toml": profile, "vllm-profiles/beside.toml": beside}
    turns = gate("--vllm-profile=ours", *CHECKS, "--vllm-against=ours", "-s", files=files)
    both = gate("--vllm-profile=beside", *CHECKS, "--vllm-against=beside")

    assert (turns.exit, both.exit) == (0, 0), turns.text
    assert "speeds are measured one after the other" in turns.text
    assert "speeds are measured in turns" in both.text
    assert turns.report["against"]["differences"] == []
