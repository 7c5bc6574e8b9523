"""The Markdown report: small enough, and nothing in it formats by itself."""

from __future__ import annotations

import re

import pytest

from pytest_vllm.decide.verdict import Verdict
from pytest_vllm.report import markdown
from tests.golden.sample_parts import record, result, run_of, server
from tests.golden.sample_runs import go, no_go
from tests.unit.report.documents import document, hostile, many


@pytest.mark.parametrize("count", [0, 1, 50, 400])
def test_markdown_fits_a_job_summary(count: int) -> None:
    """However much failed, it stays below 60 kB and says how the rest is found."""
    text = markdown.render(document(many(count)))

    assert len(text.encode()) < 60_000
    assert ("more failures in report.html" in text) == (count >= 50)


def test_markdown_with_wide_characters_fits_too() -> None:
    """The limit counts bytes."""
    rows = [result(f"chat.fact-{n}", Verdict.FAIL, reason="語" * 900) for n in range(200)]

    assert len(markdown.render(document(record({"sim": run_of(server())}, rows))).encode()) < 60_000


def test_what_a_server_said_cannot_format_markdown() -> None:
    """Markup from outside stands in fences that it cannot close, or is escaped."""
    text = markdown.render(document(hostile()))
    fences = re.findall(r"^(`{3,})text\n(.*?)\n\1$", text, re.DOTALL | re.MULTILINE)
    outside = re.sub(r"^(`{3,})text\n.*?\n\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", outside)

    assert any("# pwned" in inside for _, inside in fences)
    for mark in ("<script", "<img", "\n# pwned", "\x1b"):
        assert mark not in outside.replace("\\<", "")


def test_markdown_says_simulated() -> None:
    """A reader of the summary alone learns that no vLLM answered."""
    assert "**Simulated**" in markdown.render(document(go()))
    assert "imulated" not in markdown.render(document(no_go()))
