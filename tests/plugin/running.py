"""A finished run of the gate, with what it left in its run folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest


class Run:
    """One finished pytest run."""

    def __init__(self, result: pytest.RunResult, folder: Path) -> None:
        self.result = result
        self.exit = int(result.ret)
        self.text = "\n".join([*result.outlines, *result.errlines])
        self.folders = sorted((folder / ".vllm" / "runs").glob("*"))

    @property
    def report(self) -> Any:
        """The newest report.json."""
        return json.loads((self.folders[-1] / "report.json").read_text("utf-8"))

    @property
    def verdicts(self) -> dict[str, str]:
        """Check id -> verdict, of the newest run."""
        return {row["check"]: row["verdict"] for row in self.report["results"]}


class Gate(Protocol):
    """Runs pytest with these arguments, in a folder with these files."""

    def __call__(self, *args: str, files: Mapping[str, str] | None = None) -> Run: ...
