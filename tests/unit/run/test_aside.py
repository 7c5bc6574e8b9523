"""A slow disk and a blocked terminal do not hold the recording up, and nothing of it is lost."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.report.progress import Progress
from pytest_vllm.run.aside import Latest, Scribe
from pytest_vllm.run.lag import HELD
from tests.unit.wire.test_record import Run, planned, says_its_name

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.wire.recording import Recording

PATIENCE = 10.0


def test_a_slow_disk_does_not_hold_the_recording_up(tmp_path: Path) -> None:
    """Each file takes as long as being held up does; all lie there at the end, in the order of their ends."""
    record = Run(tmp_path)
    save, saved = record.store.save, []

    def slowly(recording: Recording) -> Path:
        time.sleep(HELD + 0.05)
        saved.append(recording.key)
        return save(recording)

    record.store.save = slowly  # type: ignore[method-assign]

    record([planned(f"e{number}") for number in range(5)], says_its_name)

    assert [key for key, _, _ in record.progress] == saved
    assert sorted(record.store.keys()) == [f"e{number}" for number in range(5)]
    assert record.report is not None
    assert record.report.concurrent_seconds < 5 * HELD


def test_a_full_disk_is_not_passed_over(tmp_path: Path) -> None:
    record = Run(tmp_path)

    def full(recording: Recording) -> Path:
        del recording
        raise OSError(28, "no space left on device")

    record.store.save = full  # type: ignore[method-assign]

    with pytest.raises(OSError, match="no space left"):
        record([planned("a"), planned("b")], says_its_name)


def test_a_scribe_keeps_the_order() -> None:
    done: list[int] = []

    async def run() -> None:
        async with Scribe() as scribe:
            for number in range(200):
                scribe.give(lambda number=number: done.append(number))  # type: ignore[misc]

    asyncio.run(run())

    assert done == list(range(200))


def test_what_is_overtaken_is_left_out() -> None:
    """The first state is being shown while ninety-nine come."""
    begun, free, shown = threading.Event(), threading.Event(), []

    def show(state: int) -> None:
        begun.set()
        free.wait(PATIENCE)
        shown.append(state)

    with Latest(show) as latest:
        latest(0)
        assert begun.wait(PATIENCE)
        for state in range(1, 100):
            latest(state)
        free.set()

    assert shown == [0, 99]


def test_a_blocked_terminal_does_not_hold_up_who_reports() -> None:
    """A pipe that nobody reads is full after 64 KiB: whoever writes to it stands still."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        while True:
            os.write(write, bytes(4096))
    except BlockingIOError:
        os.set_blocking(write, True)

    class Pipe:
        def write(self, text: str) -> Any:
            return os.write(write, text.encode())

        def flush(self) -> None:
            """Nothing is kept back."""

    began = time.perf_counter()
    with Latest(Progress(Pipe()).recorded) as show:
        for done in range(1000):
            show(done, 1000)
        taken = time.perf_counter() - began
        while b"exchanges" not in os.read(read, 65_536):
            pass
    os.close(read)
    os.close(write)

    assert taken < HELD
