"""Runs of the gate inside a test: a folder of the person's own, the embedded simulator, no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugin.running import Gate, Run

if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS = 120


@pytest.fixture
def gate(pytester: pytest.Pytester) -> Gate:
    """Run pytest as a person would: its own process, an empty folder."""

    def run(*args: str, files: Mapping[str, str] | None = None) -> Run:
        for name, text in (files or {}).items():
            path = pytester.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        return Run(pytester.runpytest_subprocess(*args, timeout=SECONDS), pytester.path)

    return run
