"""Exploring accuses no healthy server, finds what no written request meets, and asks it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.decide.verdict import Verdict
from pytest_vllm.run import search
from pytest_vllm.sim.defects.registry import all_defects
from tests.defects.explored import checks, explore

if TYPE_CHECKING:
    from pathlib import Path

AREA = "explore"
DEFECTS = [name for name, one in all_defects().items() if one.area == AREA]
RIGHT, CLEAR, ALIVE, KNOWN = (
    f"explore.{name}" for name in ("drawn.right", "drawn.clear", "drawn.alive", "known.right")
)
#: Trials of a healthy server that a test is worth: fewer are no evidence.
ENOUGH = 20
#: Seconds of drawing: for a healthy server, and at most until a defect shows.
HEALTHY, BROKEN = 8.0, 60.0
#: One of them meets each defect.
SEEDS = (1, 2, 3)

pytestmark = pytest.mark.matrix


@pytest.mark.parametrize("version", ["0.11.0", "0.27.0", "0.32.0"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_healthy_server_is_not_accused(version: str, seed: int, tmp_path: Path) -> None:
    found = explore(tmp_path / "a" / "b" / "c", seed, HEALTHY, version=version)
    verdicts = {key: verdict for key, (verdict, _) in found.verdicts.items()}

    assert found.explored.trials > ENOUGH
    assert verdicts == {RIGHT: "pass", CLEAR: "pass", ALIVE: "pass", KNOWN: "not-run"}, found.verdicts


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_found_by_one_seed_of_three(
    defect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search ends with the first kind of failure, so that the time is only a bound for a busy machine."""
    monkeypatch.setattr(search, "KINDS", 1)
    for seed in SEEDS:
        found = explore(tmp_path / str(seed) / "b" / "c", seed, BROKEN, defect)
        if found.verdicts[RIGHT][0] is Verdict.FAIL:
            break

    assert found.verdicts[RIGHT][0] is Verdict.FAIL, f"seeds {SEEDS}: {found.verdicts}"
    assert "curl" in found.verdicts[RIGHT][1]


def test_what_was_found_is_asked_in_the_next_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails again on the broken server, though nothing is drawn, and passes on a healthy one."""
    defect, root = "explore.long-response-cut", tmp_path / "root"
    root.mkdir()
    monkeypatch.setattr(search, "KINDS", 1)
    first = explore(tmp_path / "1" / "b" / "c", 2, BROKEN, defect, root=root)
    (file,) = (root / "vllm-profiles").iterdir()
    again = explore(tmp_path / "2" / "b" / "c", 1, 0.001, defect, root=root)
    healthy = explore(tmp_path / "3" / "b" / "c", 1, 0.001, root=root)

    assert first.verdicts[RIGHT][0] is Verdict.FAIL
    assert file.name == "sim.regressions.jsonl"
    assert again.explored.known == len(file.read_text("utf-8").splitlines())
    assert again.verdicts[KNOWN][0] is Verdict.FAIL
    assert healthy.verdicts[KNOWN][0] is Verdict.PASS


def test_a_server_that_generates_nothing_is_not_explored(tmp_path: Path) -> None:
    found = explore(tmp_path / "a" / "b" / "c", 1, HEALTHY, name="sim-embed")

    assert {verdict for verdict, _ in found.verdicts.values()} == {Verdict.NOT_RUN}


def test_the_checks_of_the_area() -> None:
    assert {one.key for one in checks()} == {RIGHT, CLEAR, ALIVE, KNOWN}
