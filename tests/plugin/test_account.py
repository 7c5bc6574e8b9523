"""A run that cannot see failures, or lost checks on its way, is never GO."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.running import Gate, Run

SELECT = ("--vllm-profile=sim", "--vllm-check=profile")
CONTROL = "a control check that must fail said"

NEVER_CALLED = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    return True
"""
SWALLOWED = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    try:
        return (yield)
    except AssertionError:
        return True
"""
EXCUSED = """
import pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item):
    try:
        return (yield)
    except AssertionError:
        pytest.xfail("known")
"""
DROPPED_PROTOCOL = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    return True if "test_model_served" in item.nodeid else None
"""
DROPPED_LATE = """
def pytest_collection_finish(session):
    del session.items[1:]
"""
STRIPPED = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    vars(report).pop("vllm_result", None)
"""


@pytest.fixture(autouse=True)
def _found(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plugins of the test's own folder are found by `-p`."""
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))


OWN = """
from pytest_vllm import MUST, check


@check("mine.wrong", MUST, spec="profile:mine")
def test_mine(vllm_server):
    \"\"\"No server is there.\"\"\"
    assert vllm_server is None
"""


def test_a_conftest_that_eats_failures_beside_own_checks_is_found_out(gate: Gate) -> None:
    files = {"own/test_mine.py": OWN, "own/conftest.py": SWALLOWED}

    run = gate("--vllm-profile=sim", "own", "suites/models", files=files)

    assert run.verdicts["mine.wrong"] == "pass", "or the plugin eats nothing"
    assert run.exit == 21, run.text
    assert CONTROL in words(run)


def words(run: Run) -> str:
    """What was printed, its lines joined."""
    return " ".join(run.text.split())


@pytest.mark.parametrize("conftest", [NEVER_CALLED, SWALLOWED, EXCUSED], ids=["never", "eaten", "excused"])
def test_a_plugin_that_eats_failures_is_found_out(gate: Gate, conftest: str) -> None:
    run = gate(*SELECT, "-p", "evil", files={"evil.py": conftest})

    assert run.exit == 21, run.text
    assert CONTROL in words(run)
    assert {row["answer"] for row in run.report["profiles"]} == {"UNDECIDED"}


def test_the_control_is_run_where_the_tests_are(gate: Gate) -> None:
    run = gate(*SELECT, "-n2", "-p", "evil", files={"evil.py": SWALLOWED})

    assert run.exit == 21, run.text
    assert CONTROL in words(run)


def test_asserts_that_are_switched_off_are_found_out(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")

    run = gate(*SELECT, "--assert=plain", "--vllm-defect=profile.context-halved")

    assert run.exit == 21, run.text
    assert CONTROL in words(run)


@pytest.mark.parametrize(
    ("conftest", "lost"), [(DROPPED_PROTOCOL, "1 of 6"), (DROPPED_LATE, "5 of 6"), (STRIPPED, "6 of 6")]
)
def test_checks_that_left_no_verdict_are_missed(gate: Gate, conftest: str, lost: str) -> None:
    run = gate(*SELECT, "-p", "evil", files={"evil.py": conftest})

    assert run.exit not in (0, 4), run.text
    assert f"{lost} selected checks left no verdict" in words(run)


@pytest.mark.parametrize("more", [("-k", "served"), ("-k", "served", "-n2"), ("--deselect=suites/profile",)])
def test_what_was_left_out_is_said_beside_the_answer(gate: Gate, more: tuple[str, ...]) -> None:
    run = gate(*SELECT, *more)

    assert "partial: " in run.text or run.exit == 5, run.text
    assert ("partial: 1 of 6 checks" in words(run)) is ("-k" in more)


def test_a_whole_run_is_not_partial_and_its_control_is_not_shown(gate: Gate) -> None:
    run = gate("--vllm-profile=sim", "--vllm-profile=sim-lora", "--vllm-check=profile.model")

    assert run.exit == 0, run.text
    assert "partial: " not in run.text
    assert "control check" not in run.text
    assert not [check for check in run.verdicts if check.startswith("control")]
