"""A verdict on the terminal and its exit status, whatever can be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.running import Gate

SELECT = ("--vllm-profile=sim", "--vllm-check=profile.model.served")
FULL = """
import errno
from pathlib import Path

whole = Path.write_bytes

def full(path, body):
    if "report." in path.name:
        raise OSError(errno.ENOSPC, "No space left on device")
    return whole(path, body)

Path.write_bytes = full
"""
CRASHES = """
from pytest_vllm.report import json_report

def crash(*_):
    raise RuntimeError("a bug of ours")

json_report.document = crash
"""


def test_a_report_folder_that_cannot_be_made_is_said_before_the_boot(gate: Gate) -> None:
    run = gate(*SELECT, "--vllm-report=taken/x", files={"taken": "a file"})

    assert run.exit == 4, run.text
    assert "no run can be kept there" in run.text
    assert "Traceback" not in run.text
    assert "INTERNALERROR" not in run.text


@pytest.mark.parametrize(
    ("conftest", "said"),
    [
        (FULL, "report.html was not written: OSError"),
        (CRASHES, "was not written: RuntimeError: a bug of ours"),
    ],
    ids=["full", "crash"],
)
def test_the_verdict_is_said_without_reports(gate: Gate, conftest: str, said: str) -> None:
    run = gate(*SELECT, files={"conftest.py": conftest})

    assert run.exit == 0, run.text
    assert said in run.text
    assert "GO  sim" in run.text
    assert "INTERNALERROR" not in run.text
