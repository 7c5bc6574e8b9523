"""The gate against a server of hostile modes: verdict, seconds and memory of each, as a table.

    python -m tests.hostile SCRIPT                       every mode that `SCRIPT --list` names
    python -m tests.hostile SCRIPT --mode never …        these only, with what the gate printed
    python -m tests.hostile SCRIPT --option=--vllm-check=chat …

SCRIPT serves a small vLLM with one hostility at http://127.0.0.1:PORT/m/MODE (`SCRIPT --port PORT`, which
prints `up`). A mode is passed when the gate ends in time and memory, says anything but GO, blames no fault of
its own (exit status 3) and prints no traceback.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING

from pytest_vllm.launch.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parents[2]
#: What a mode may take, at most, and when it is ended.
SECONDS, MEMORY_MB, PATIENCE = 60.0, 300.0, 90.0
GO, OURS = 0, 3
TRACES = ("Traceback (most recent call last)", "INTERNALERROR")


@dataclass(frozen=True)
class Row:
    """How the gate took a mode.

    Args:
        mode: its name.
        status: exit status; negative when it was ended by a signal.
        answer: the line with the verdict.
        seconds: until it ended.
        memory: peak resident memory in MB, the process and what it started.
        text: what it printed.
    """

    mode: str
    status: int
    answer: str
    seconds: float
    memory: float
    text: str

    @property
    def faults(self) -> list[str]:
        """What was not as it should be."""
        trace = next((line for line in TRACES if line in self.text), "")
        return [
            *([f"exit status {self.status}"] if self.status in (GO, OURS) or self.status < 0 else []),
            *(["a traceback"] if trace else []),
            *(["too slow"] if self.seconds > SECONDS else []),
            *(["too much memory"] if self.memory > MEMORY_MB else []),
        ]

    def __str__(self) -> str:
        """A row of the table."""
        said = self.answer.replace("|", "/")[:90]
        wrong = ", ".join(self.faults) or "ok"
        return (
            f"| `{self.mode}` | {self.status} | {said} | {self.seconds:.0f} | {self.memory:.0f} | {wrong} |"
        )


@contextmanager
def served(script: Path) -> Iterator[int]:
    """The hostile server's port."""
    port = free_port()
    command = [sys.executable, str(script), "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            server.stdout.readline()
            yield port
        finally:
            server.kill()


def alone(script: Path, mode: str, options: Sequence[str], folder: Path) -> Row:
    """Run the gate against a mode whose server serves nobody else: some modes keep a whole server busy."""
    with served(script) as port:
        return judged(mode, port, options, folder)


def judged(mode: str, port: int, options: Sequence[str], folder: Path) -> Row:
    """Run the gate against a mode."""
    out = folder / f"{mode}.txt"
    report = f"--vllm-report={folder / mode}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "suites", report, *options]
    began = time.monotonic()
    with out.open("wb") as said:
        process = subprocess.Popen(
            [*command, f"--vllm-url=http://127.0.0.1:{port}/m/{mode}"],
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            start_new_session=True,
        )
        timer = _ended_after(process, PATIENCE)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        timer.cancel()
    text = out.read_text("utf-8", "replace")
    seconds = time.monotonic() - began
    return Row(mode, process.returncode, _answer(text), seconds, usage.ru_maxrss / 1024, text)


def _ended_after(process: subprocess.Popen[bytes], seconds: float) -> Timer:
    timer = Timer(seconds, lambda: os.killpg(process.pid, signal.SIGKILL))
    timer.daemon = True
    timer.start()
    return timer


def _answer(text: str) -> str:
    words = ("NO-GO", "UNDECIDED", "GO ", "did not boot", "INTERNALERROR")
    lines = [line.strip() for line in text.splitlines()]
    return next((line for word in words for line in lines if line.startswith(word) or word in line[:40]), "")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; 1 when a mode is not passed."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("script", type=Path)
    parser.add_argument("--mode", action="append", help="only this mode; may be repeated")
    parser.add_argument("--option", action="append", default=[], help="an option of the gate")
    parser.add_argument("--at-once", type=int, default=1)
    options = parser.parse_args(argv)
    listed = subprocess.run(
        [sys.executable, str(options.script), "--list"], check=True, capture_output=True, text=True
    )
    modes = options.mode or listed.stdout.split()[1:]
    rows = []
    print("| mode | exit | verdict | s | MB | |\n| --- | --- | --- | --- | --- | --- |")
    with (
        tempfile.TemporaryDirectory(prefix="pytest-vllm-hostile-") as folder,
        ThreadPoolExecutor(options.at_once) as pool,
    ):
        jobs = [pool.submit(alone, options.script, mode, options.option, Path(folder)) for mode in modes]
        for row in (job.result() for job in as_completed(jobs)):
            rows.append(row)
            print(row, flush=True)
            if options.mode:
                print(row.text)
    missed = [row.mode for row in rows if row.faults]
    print(f"\n{len(rows)} modes, {len(missed)} not as they should be: {', '.join(missed)}")
    return bool(missed)


if __name__ == "__main__":
    raise SystemExit(main())
