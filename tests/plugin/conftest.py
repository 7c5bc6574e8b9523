"""Runs of the gate inside a test: a folder of the person's own, the embedded simulator, no network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


class Run:
    """One finished pytest run, with what it left in its run folder."""

    def __init__(self, result: pytest.RunResult, folder: Path) -> None:
        self.result = result
        self.exit = int(result.ret)
        self.text = "\n".join([*result.outlines, *result.errlines])
        self.folders = sorted((folder / ".vllm" / "runs").glob("*"))

    @property
    def report(self) -> Any:
        return json.loads((self.folders[-1] / "report.json").read_text("utf-8"))

    @property
    def verdicts(self) -> dict[str, str]:
        return {row["check"]: row["verdict"] for row in self.report["results"]}


@pytest.fixture
def gate(pytester: pytest.Pytester):  # type: ignore[no-untyped-def]
    """Run pytest with these arguments as a person would: its own process, an empty folder."""

    def run(*args: str, files: dict[str, str] | None = None) -> Run:
        for name, text in (files or {}).items():
            path = pytester.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        return Run(pytester.runpytest_subprocess(*args, timeout=120), pytester.path)

    return run
