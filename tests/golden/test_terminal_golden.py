"""Every text that an operator can meet at the end of a run, whole."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.decide.verdict import Verdict
from pytest_vllm.report import terminal
from pytest_vllm.report.progress import Progress
from pytest_vllm.report.text import columns
from tests.golden.sample_parts import server
from tests.golden.sample_runs import RUNS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.report.record import RunRecord

#: What a person copies is never cut: lines that begin so may be longer than the terminal is wide.
COPIED = ("rerun ", "curl ", "spec ", "        http", "reports ", "<    full record", "source ")


def printed(record: RunRecord) -> str:
    """What the gate prints for a run, pytest's own lines left out."""
    lines = [line for failure in record.boot_failures for line in terminal.did_not_boot_block(failure)]
    for row in record.results:
        if row.verdict in (Verdict.FAIL, Verdict.UNDECIDED):
            before = "passed on 2026-11-20 (vLLM 0.31.0)" if row.check.startswith("tools") else None
            block = terminal.failure_block(
                row, record.servers[row.profile], folder=record.folder, before=before
            )
            lines += [f" {row.check} ".center(80, "_"), block]
    if not record.boot_failures:
        lines += terminal.verdict_lines(record)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", RUNS)
def test_a_run_reads_as_agreed(name: str, golden: Callable[[str, str], None]) -> None:
    """What a run prints is what the golden file shows."""
    golden(f"{name}.txt", printed(RUNS[name]()))


@pytest.mark.parametrize("name", RUNS)
def test_no_line_is_wider_than_the_terminal(name: str) -> None:
    """Lines stay within 100 columns, but for what a person copies."""
    lines = printed(RUNS[name]()).split("\n")

    wide = [line for line in lines if columns(line) > 100 and not line.startswith(COPIED)]
    assert wide == []


@pytest.mark.parametrize("name", [name for name in RUNS if RUNS[name]().simulated])
def test_a_simulated_run_says_so(name: str) -> None:
    """The verdict's heading and every failure of the simulator say that it is simulated."""
    text = printed(RUNS[name]())

    assert "simulated) ====" in text
    assert "sim (simulated): " in text


class Clock:
    """A clock that stands still until it is set."""

    now = 1000.0

    def __call__(self) -> float:
        """The present second."""
        return self.now

    def at(self, seconds: float) -> None:
        """Set to so many seconds after the start."""
        self.now = 1000.0 + seconds


def boot(progress: Progress, clock: Clock) -> None:
    """A boot as the launcher tells it, looked at every quarter of a second or so."""
    progress.phase("boot", "container pytest-vllm-7c1e started")
    for second in range(12, 150):
        clock.at(second)
        progress.update(f"loading weights, {second // 20} of 15 shards", age=second % 7)
    clock.at(304)
    progress.update("sizing KV cache: 61.2 GiB, 12.6 sequences of 32768 tokens")
    clock.at(310)
    progress.update("compiling and capturing graphs")
    clock.at(339)
    progress.update("compiling and capturing graphs", age=29)
    clock.at(341)
    progress.update("compiling and capturing graphs", age=31)
    clock.at(592)
    progress.done("http://127.0.0.1:49153, slowest step: compiling 4:42", "ready")
    progress.probed(server("spark-fp8", simulated=False))
    for done in range(1, 81):
        clock.at(592 + done * 0.5)
        progress.recorded(done, 80)


def test_progress_without_a_terminal(golden: Callable[[str, str], None]) -> None:
    """A line per step, a heartbeat every 30 s, and nothing in between."""
    stream, clock = io.StringIO(), Clock()
    boot(Progress(stream, clock=clock), clock)

    golden("progress-no-tty.txt", stream.getvalue())
