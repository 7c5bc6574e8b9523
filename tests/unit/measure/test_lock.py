"""One run measures a server at a time, and leaves no file of the lock."""

from __future__ import annotations

import io
import tempfile
import threading
from typing import TYPE_CHECKING

from pytest_vllm.report.progress import Progress
from pytest_vllm.run.bench import alone

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

URL = "http://127.0.0.1:8000"


def test_runs_take_turns_and_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every holder takes the file away; still no two hold it at once."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    inside: list[int] = []
    most: list[int] = []

    def measure() -> None:
        for _ in range(5):
            with alone(URL, Progress(io.StringIO())):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    runs = [threading.Thread(target=measure) for _ in range(4)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()

    assert (len(most), max(most)) == (20, 1)
    assert list(tmp_path.iterdir()) == []
