"""A server that does not come back as it went is caught, and a healthy one is not."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.decide.verdict import Verdict
from pytest_vllm.launch.protocol import BootError
from pytest_vllm.sim.defects.registry import all_defects
from tests.defects.judging import Check, collect, judge_all
from tests.defects.outcome import CAUGHT
from tests.defects.recording import profile_for, record

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.decide.verdict import Result

AREA = "restart"
DEFECTS = {name: one for name, one in all_defects().items() if one.area == AREA}


@cache
def checks() -> tuple[list[Check], list[pytest.Item]]:
    return collect("sim", "--vllm-tier=soak", f"--vllm-check={AREA}")


def results(folder: Path, *defects: str) -> dict[str, Result]:
    """What every check of the area says, by id."""
    view = record(folder, profile_for(defects), checks()[1])
    assert not isinstance(view, BootError)
    return {one.check: one for one in judge_all(checks()[0], view)}


def test_a_healthy_server_comes_back(tmp_path: Path) -> None:
    """All checks pass; none is undecided or left out."""
    found = results(tmp_path)

    assert {name: one.reason for name, one in found.items() if one.verdict is not Verdict.PASS} == {}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_caught_by_the_checks_it_names(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And by no other, but where a server whose memory is held does not start again."""
    monkeypatch.setattr("pytest_vllm.launch.started.GRACE", 1)
    monkeypatch.setattr("pytest_vllm.run.restart.GIVES_BACK", 1)
    wrong = {check for check, one in results(tmp_path, name).items() if one.verdict in CAUGHT}

    assert set(DEFECTS[name].catches) <= wrong
    assert wrong - set(DEFECTS[name].catches) <= {"restart.starts-again"}


def test_every_check_has_a_defect() -> None:
    """What nothing breaks proves nothing."""
    assert {one.spec.id for one in checks()[0]} == {
        check for one in DEFECTS.values() for check in one.catches
    }
