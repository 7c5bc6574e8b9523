"""What the calibrator of these tests does, and a fixture that starts it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Seconds to the first word and between two; words of an answer.
FIRST, GAP, WORDS = 0.05, 0.01, 12


@pytest.fixture(scope="module")
def calibrator() -> Iterator[Server]:
    """A server that computes nothing and keeps its times, in a process of its own."""
    command = [sys.executable, "-m", "tools.calibrator"]
    command += ["--first", str(FIRST), "--gap", str(GAP), "--events", str(WORDS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield Server(f"http://127.0.0.1:{process.stdout.readline().strip()}", "calibrator")
        process.terminate()
