"""One line for each cause that GitHub Actions shows beside the job: `::error title=…::…`.

Source: GitHub's documentation, "Workflow commands for GitHub Actions", setting an error message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.report.causes import headline, observed
from pytest_vllm.report.text import clip, printable

if TYPE_CHECKING:
    from pytest_vllm.report.record import RunRecord
    from pytest_vllm.wire.redact import Redactor

#: Columns of an annotation's words; GitHub shows ten errors of a step, so more lines would be lost.
COLUMNS, MOST = 300, 10


def error_commands(record: RunRecord, redactor: Redactor) -> list[str]:
    """A workflow command for each of the likeliest causes, redacted, each on one line."""
    lines = []
    for cause in record.causes[:MOST]:
        title = _property(printable(redactor.text(f"vllm: {headline(cause)}")))
        said = printable(redactor.text(f"{cause.first.fact} Observed: {observed(cause)}"))
        lines.append(f"::error title={title}::{_message(clip(said, COLUMNS))}")
    return lines


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
