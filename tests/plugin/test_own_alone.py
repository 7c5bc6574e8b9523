"""Own tests without bundled checks: what is collected, what the answer is, which exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugin.test_account import SWALLOWED

if TYPE_CHECKING:
    from tests.plugin.running import Gate, Run

INI = "[pytest]\nvllm_profile = sim\n"
COUNT = f"{INI}vllm_own_tests = count\n"
MINE = """
def test_asks(vllm_http):
    assert vllm_http.get("/health").status_code == 200


def test_looks(vllm_server):
    assert vllm_server.model


def test_without_a_server():
    assert 1 + 1 == 2
"""
ASKS_MODELS = """
def test_guarded(vllm_http):
    assert vllm_http.get("/v1/models").status_code == 200
"""
SKIPPED = """
import pytest


@pytest.mark.skip(reason="not here")
def test_asks(vllm_server):
    assert vllm_server.model
"""
DYNAMIC = """
def test_asks(request):
    assert request.getfixturevalue("vllm_server").model
"""


def words(run: Run) -> str:
    """What was printed, its lines joined."""
    return " ".join(run.text.split())


def test_plain_pytest_runs_the_projects_tests_and_is_green(gate: Gate) -> None:
    run = gate(files={"pytest.ini": INI, "test_mine.py": MINE})

    run.result.assert_outcomes(passed=3)
    assert run.exit == 0, run.text
    assert "vllm: collects this project's own tests; the bundled checks join by --vllm-suites" in words(run)
    assert "NO VERDICT sim (simulated): 3 own tests passed, no check ran" in words(run)
    assert run.report["answer"]["answer"] == run.report["profiles"][0]["answer"] == "NO VERDICT"
    assert run.verdicts == {}


@pytest.mark.parametrize("more", [(), ("-n2",)], ids=["", "xdist"])
def test_counted_own_tests_are_a_go(gate: Gate, more: tuple[str, ...]) -> None:
    run = gate(*more, files={"pytest.ini": COUNT, "test_mine.py": MINE})

    assert run.exit == 0, run.text
    assert "GO sim (simulated): 2 own tests, 0 checks" in words(run), "the third never asked the server"


def test_a_single_test_of_counted_ones_is_green_and_partial(gate: Gate) -> None:
    run = gate("-k", "looks", files={"pytest.ini": COUNT, "test_mine.py": MINE})

    assert run.exit == 0, run.text
    assert "GO sim (simulated): 1 own test, 0 checks; partial: 1 of 2 own tests" in words(run)


def test_counted_tests_under_a_plugin_that_eats_failures_are_no_go_ahead(gate: Gate) -> None:
    run = gate(files={"pytest.ini": COUNT, "test_mine.py": MINE, "conftest.py": SWALLOWED})

    assert run.exit == 21, run.text
    assert "a control check that must fail said" in words(run)


@pytest.mark.parametrize(
    ("ini", "mine", "status"),
    [(INI, SKIPPED, 0), (COUNT, SKIPPED, 5), (INI, DYNAMIC, 0), (INI, "", 5)],
    ids=["skipped", "counted-skipped", "asked-by-name", "none"],
)
def test_what_is_green(gate: Gate, ini: str, mine: str, status: int) -> None:
    run = gate(files={"pytest.ini": ini, "test_mine.py": mine})

    assert run.exit == status, run.text


def test_bundled_checks_join_when_the_ini_file_says_so(gate: Gate) -> None:
    ini = f"{INI}vllm_suites = true\n"
    run = gate("-k", "test_model_served or looks", files={"pytest.ini": ini, "test_mine.py": MINE})

    assert run.verdicts == {"profile.model.served": "pass"}
    assert "collects the bundled checks and this project's own tests" in words(run)
    assert "1 check decided, none failed; 1 own test passed" in words(run)


def test_an_own_test_by_k_is_green_beside_bundled_checks_that_were_left_out(gate: Gate) -> None:
    ini = f"{COUNT}vllm_suites = true\n"
    run = gate("-k", "looks", files={"pytest.ini": ini, "test_mine.py": MINE})

    assert run.exit == 0, run.text
    assert "1 own test passed, no check ran; partial: 0 of" in words(run)
    assert run.report["answer"]["answer"] == "NO VERDICT"


@pytest.mark.parametrize(
    ("args", "bundled", "mine"),
    [
        ((), False, True),
        (("--vllm-profile=sim",), True, True),
        (("--vllm-suites",), True, True),
        (("test_mine.py",), False, True),
        (("suites/models",), True, False),
    ],
)
def test_what_is_collected(gate: Gate, args: tuple[str, ...], bundled: bool, mine: bool) -> None:
    run = gate("--collect-only", "-q", *args, files={"pytest.ini": INI, "test_mine.py": MINE})

    assert ("suites/models/test_list.py::" in run.text) is bundled
    assert ("test_mine.py::test_looks" in run.text) is mine


def test_without_an_ini_file_the_option_runs_the_bundled_checks_alone(gate: Gate) -> None:
    run = gate("--collect-only", "-q", "--vllm-profile=sim", files={"test_mine.py": MINE})

    assert "suites/models/test_list.py::" in run.text
    assert "test_mine.py" not in run.text


def test_an_exported_key_is_the_simulators_and_is_sent(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "sk-exported-by-the-person")

    run = gate("-n2", files={"pytest.ini": COUNT, "test_mine.py": f"{MINE}\n\n{ASKS_MODELS}"})

    assert run.exit == 0, run.text
    assert "GO sim (simulated): 3 own tests, 0 checks" in words(run)
    assert "sk-exported-by-the-person" not in run.text
