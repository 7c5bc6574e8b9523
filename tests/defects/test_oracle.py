"""What the soak tier adds to the oracles is broken by a defect, and a healthy server passes it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.decide.verdict import Verdict
from pytest_vllm.launch.protocol import BootError
from tests.defects.judging import Check, collect, judge_all
from tests.defects.recording import profile_for, record

if TYPE_CHECKING:
    from pathlib import Path

AREA = "oracle"
ADDED = {
    "oracle.repeated.often": "oracle.one-in-fifty",
    "oracle.prompt.each-counted": "oracle.streams-cost-more",
}

pytestmark = pytest.mark.matrix


@cache
def checks() -> tuple[list[Check], list[pytest.Item]]:
    return collect("sim", "--vllm-tier=soak", f"--vllm-check={AREA}")


def failing(folder: Path, *defects: str) -> set[str]:
    view = record(folder, profile_for(defects), checks()[1])
    assert not isinstance(view, BootError)
    return {one.check for one in judge_all(checks()[0], view) if one.verdict is Verdict.FAIL}


def test_the_soak_tier_adds_these_checks() -> None:
    assert {one.spec.id for one in checks()[0] if one.spec.tier == "soak"} == set(ADDED)


def test_a_healthy_server_passes(tmp_path: Path) -> None:
    assert failing(tmp_path) == set()


@pytest.mark.parametrize(("check", "defect"), ADDED.items())
def test_a_defect_breaks_it(check: str, defect: str, tmp_path: Path) -> None:
    assert check in failing(tmp_path, defect)
