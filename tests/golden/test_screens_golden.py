"""What a person sees at the end: the last screen of 24 rows of 80 columns, and a CI job's log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.report import terminal
from pytest_vllm.report.annotations import AZURE, GITHUB, job_lines
from pytest_vllm.report.causes import MOST_CAUSES
from pytest_vllm.report.redaction import redactor_for
from pytest_vllm.report.text import Style, columns
from tests.golden import sample_runs
from tests.golden.five import KEPT, broken
from tests.golden.sample_runs import go

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.report.record import RunRecord

ROWS, COLUMNS = 24, 80
NARROW = Style(width=COLUMNS)
#: What a person copies is never cut.
COPIED = ("rerun ", "curl ", "reports ", "<    full record")
#: Lines of a CI job's log that are pytest's and the progress's: measured with the gate on the simulator.
BEFORE = 50


def screen(record: RunRecord) -> list[str]:
    """The last rows of a terminal, what the gate printed before them above."""
    lines = terminal.verdict_lines(record, style=NARROW)
    return lines[-ROWS:]


def ci_log(record: RunRecord) -> list[str]:
    """What the gate prints under CI=true after pytest's letters."""
    lines = []
    for cause in record.causes[:MOST_CAUSES]:
        block = terminal.failure_block(
            cause.first, record.servers["sim"], folder=record.folder, style=NARROW, brief=True
        )
        lines += [f" {cause.first.check} ".center(COLUMNS, "_"), *block.split("\n")]
    lines += terminal.detail_lines(record, style=NARROW, brief=True)
    return [*lines, *terminal.last_screen(record, style=NARROW)]


def runs() -> dict[str, RunRecord]:
    """Five defects and a run in which everything holds."""
    return {**{name: broken(name) for name in KEPT}, "go": go()}


NAMES = [*KEPT, "go"]


@pytest.mark.parametrize("name", NAMES)
def test_the_last_screen_is_as_agreed(name: str, golden: Callable[[str, str], None]) -> None:
    """24 rows of 80 columns hold the causes, the rerun line, the reports and, last, the answer."""
    shown = screen(runs()[name])

    golden(f"screen-{name}.txt", "\n".join(shown) + "\n")
    assert shown[-1].startswith("GO " if name == "go" else "NO-GO ")
    assert len(terminal.last_screen(runs()[name], style=NARROW)) <= ROWS
    assert [line for line in shown if columns(line) > COLUMNS and not line.startswith(COPIED)] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_log_of_a_ci_job_is_as_agreed(name: str, golden: Callable[[str, str], None]) -> None:
    """Under CI=true a failing gate prints fewer than 150 lines."""
    shown = ci_log(runs()[name])

    golden(f"ci-{name}.txt", "\n".join(shown) + "\n")
    assert len(shown) + BEFORE < 150


@pytest.mark.parametrize(("where", "begins"), [(GITHUB, "::error title="), (AZURE, "##vso[task.logissue ")])
@pytest.mark.parametrize("name", KEPT)
def test_each_cause_is_one_annotation_on_one_line(name: str, where: str, begins: str) -> None:
    """A line is read for each cause; nothing in it ends the command early."""
    record = broken(name)
    lines = job_lines(record, redactor_for(()), {where: "true"})

    assert len(lines) == len(record.causes)
    assert [line for line in lines if not line.startswith(begins) or len(line.splitlines()) != 1] == []
    assert where == AZURE or all(line.split("::")[1].count(",") == 0 for line in lines)
    assert job_lines(record, redactor_for(()), {}) == []


@pytest.mark.parametrize(
    ("record", "begins"),
    [
        (sample_runs.did_not_boot, "::error title=vllm%3A"),
        (sample_runs.undecided, "::warning title=vllm%3A stream.stop.not-in-text could not be decided::"),
        (sample_runs.go, ""),
    ],
)
def test_what_is_no_go_for_want_of_a_verdict_is_an_annotation_too(
    record: Callable[[], RunRecord], begins: str
) -> None:
    lines = job_lines(record(), redactor_for(()), {GITHUB: "true"})

    assert bool(lines) is bool(begins)
    assert all(line.startswith(("::error", "::warning")) for line in lines)
    assert not begins or lines[0].startswith(begins)
