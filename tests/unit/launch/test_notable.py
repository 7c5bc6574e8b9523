"""Warnings of a start that succeeded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_vllm.launch.diagnose import root_cause
from pytest_vllm.launch.diagnosis import Sure, diagnose
from pytest_vllm.launch.notable import Row, rows, startup_warnings

HEALTHY = (Path(__file__).parent / "logs" / "healthy.log").read_text("utf-8").splitlines()


def test_a_real_start() -> None:
    """The one of vLLM 0.32.0 for the CPU that was told to be eager: that, and nothing else."""
    found = startup_warnings(HEALTHY)

    assert [one.id for one in found] == ["eager-mode"]
    assert "Enforce eager set" in HEALTHY[found[0].number - 1] == found[0].line


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_entries_of_the_table(row: Row) -> None:
    """Each has an example that it is the first to match, all places filled, and fails no start."""
    (found,) = startup_warnings([f"(EngineCore pid=7) WARNING 11-27 20:50:01 [x.py:1] {row.example}"])

    assert found.id == row.id
    assert found.tries
    assert row.source
    assert not re.search(r"\{\w+\}", " ".join([found.means, *found.tries]))
    assert root_cause([f"WARNING 11-27 20:50:01 [x.py:1] {row.example}"]) is None


@pytest.mark.parametrize("level", ["WARNING", "INFO"])
@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_a_start_with_a_warning_has_no_fault(row: Row, level: str) -> None:
    """It is reported, beside whatever else the log warns of, and accuses nothing."""
    line = f"(EngineCore pid=7) {level} 11-27 20:50:01 [x.py:1] {row.example}"
    found = diagnose([*HEALTHY[:8], line, *HEALTHY[8:]])

    assert found.sure is Sure.NO_FAULT
    assert row.id in {one.id for one in found.warnings}


def test_a_start_that_goes_on_with_something_else_names_no_cause() -> None:
    """What a warning says is done instead did not stop it."""
    lines = [
        "(EngineCore pid=7) WARNING 11-27 20:50:01 [x.py:1] FlashAttention is not supported: falling back.",
        "(EngineCore pid=7) INFO 11-27 20:50:02 [x.py:1] Starting to load model m...",
    ]

    assert diagnose(lines).sure is Sure.UNKNOWN


def test_ids_are_unique() -> None:
    """A warning is told by its id."""
    assert len({row.id for row in rows()}) == len(rows())


def test_each_once_in_the_order_of_the_log() -> None:
    """Every worker says the same; the first line stands for all."""
    capped = "Capping cudagraph capture sizes from max 512 to 352 to fit Mamba cache blocks"
    lines = ["INFO fine", capped, "Development endpoints are enabled", capped]

    assert [(one.id, one.number) for one in startup_warnings(lines)] == [
        ("graphs-capped", 2),
        ("development-mode", 3),
    ]


@pytest.mark.parametrize(
    ("times", "said"), [("0.97x", True), ("1.21x", True), ("2.00x", False), ("11.10x", False)]
)
def test_a_small_cache(times: str, said: bool) -> None:
    """Room for two whole requests is enough to work with."""
    line = f"Maximum concurrency for 32,768 tokens per request: {times}"

    assert bool(startup_warnings([line])) is said
