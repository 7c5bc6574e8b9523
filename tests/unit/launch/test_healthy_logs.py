"""Logs of servers that are well, with the frightening lines of public ones: no cause is named."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from pytest_vllm.launch.diagnosis import Sure, diagnose
from tests.unit.launch.test_altered_logs import composed, journalled, podded, stamped

FOLDER = Path(__file__).parent / "logs"
WELL = (FOLDER / "healthy.log").read_text("utf-8").splitlines()
CASES = tomllib.loads((FOLDER / "healthy.toml").read_text("utf-8"))["case"]
ANSWERED = '(APIServer pid=3) INFO:     10.0.0.7:51000 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
GOES_ON = "(EngineCore pid=7) INFO 11-27 20:50:01 [gpu_model_runner.py:1] Starting to load model m..."


def whole(case: dict[str, Any]) -> list[str]:
    """The log around the lines of a case: a start, and a request that is answered behind them."""
    lines = case["log"].splitlines()
    if not case.get("after"):
        return [*WELL[:8], *lines, *WELL[8:], ANSWERED]
    return [*WELL, ANSWERED, *lines, *([] if case.get("ends") else [ANSWERED])]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["source"])
def test_a_server_that_is_well(case: dict[str, Any]) -> None:
    """However it sounds."""
    found = diagnose(whole(case))

    assert (found.sure, found.cause) == (Sure.NO_FAULT, "")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["source"])
def test_a_log_that_was_cut(case: dict[str, Any]) -> None:
    """Its begin alone, up to these lines and a little further, names no cause either."""
    begin = WELL if case.get("after") else WELL[:8]

    assert diagnose([*begin, *case["log"].splitlines(), GOES_ON]).cause == ""


@pytest.mark.parametrize("alter", [composed, journalled, podded, stamped], ids=lambda one: one.__name__)
def test_whatever_carries_it(alter: Any) -> None:
    """Compose, journald, Kubernetes."""
    wrong = {case["source"]: diagnose(alter(whole(case))).cause for case in CASES}

    assert not any(wrong.values()), wrong
