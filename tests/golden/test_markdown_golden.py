"""The Markdown of whole runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.report import json_report, markdown
from pytest_vllm.wire.curl import curl
from pytest_vllm.wire.redact import Redactor
from tests.golden.sample_runs import RUNS

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("name", ["no-go-stream", "two-profiles", "did-not-boot"])
def test_a_run_reads_as_agreed(name: str, golden: Callable[[str, str], None]) -> None:
    """What a CI job's summary shows is what the golden file shows."""
    golden(f"{name}.md", markdown.render(json_report.document(RUNS[name](), Redactor(), curl)))
