"""The comparison with an older server of the same run, in every report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from pytest_vllm.report import html, markdown
from pytest_vllm.report.answer import detail_lines
from pytest_vllm.report.compare.comparison import compare
from pytest_vllm.report.json_report import schema
from tests.golden.sample_runs import go
from tests.unit.report.compare.runs import chat, part_of, run_of
from tests.unit.report.documents import HOSTILE, document

if TYPE_CHECKING:
    from pytest_vllm.report.record import RunRecord


def compared(was: str = "0.31.0") -> dict[str, Any]:
    """A comparison in which a check broke and a speed is less."""
    before = part_of([chat("a", "one")], version=was)
    after = part_of([chat("a", "one")], results={"a.one": "fail"})
    turns = {"throughput.decode": {"decode-tok-s": [(42.0, 38.0)] * 5, "ttft": [(0.1, 0.1)]}}
    return compare(run_of(before), run_of(after), ("p", "p"), turns)


def with_(**more: Any) -> RunRecord:
    return replace(go(), **more)


def test_every_report_says_what_breaks_clients_and_what_is_slower() -> None:
    run = with_(against=compared())
    views = ["\n".join(detail_lines(run)), markdown.render(document(run)), html.render(document(run))]

    jsonschema.validate(document(run), schema())
    for view in views:
        assert "a.one" in view
        assert "0.905" in view
        assert "slower" in view
        assert "1 pairs are too few" in view
    assert "Compared with the older server" in views[2]


def test_lines_of_a_terminal_stay_within_its_columns() -> None:
    lines = detail_lines(with_(against=compared(was="0.31.0 " * 40)))
    begin = next(number for number, line in enumerate(lines) if line.startswith("compared with"))

    assert len(lines[begin:]) > 6
    assert max(map(len, lines[begin:])) <= 100


@pytest.mark.parametrize("render", [html.render, markdown.render])
def test_what_a_server_said_formats_nothing(render: Any) -> None:
    text = render(document(with_(against=compared(was=HOSTILE)))).replace(r"\<", "")  # escaped for Markdown

    assert "pwned" in text
    assert "<script>alert" not in text
    assert "<img" not in text


def test_why_nothing_was_compared_is_in_every_report() -> None:
    run = with_(against_why="it died <b>")
    jsonschema.validate(document(run), schema())

    assert "not compared with the older server: it died <b>" in detail_lines(run)
    assert r"Not compared with the older server: it died \<b\>" in markdown.render(document(run))
    assert "it died &lt;b&gt;" in html.render(document(run))
