"""The history of a profile as a page: plots of its figures, cut where their level changed."""

from __future__ import annotations

from typing import Any

from pytest_vllm.report.compare.history import changed, columns
from pytest_vllm.report.past_page import drawn, page

SPEED = "decode-tok-s of decode"


def row(number: int, speed: float | None, **more: Any) -> dict[str, Any]:
    """A run's row."""
    figures = {} if speed is None else {SPEED: speed}
    counts = {"passed": 9, "failed": 0, "undecided": None, "start": 30.0 + number / 10}
    named = {"run": f"r{number:02}", "started": f"2026-11-{number:02} 08:00", "version": "0.32.0"}
    return {**named, "answer": "GO", **counts, "mark": "", "figures": figures, **more}


TABLE = [row(number, 100.0 + number / 10 if number < 9 else 80.0 + number / 10) for number in range(1, 17)]


def test_a_change_of_level_is_said_and_seen() -> None:
    found = changed(TABLE)
    text = page("<chat>", TABLE, columns(TABLE), found)

    assert [one["run"] for one in found if one["figure"] == SPEED] == ["r09"]
    assert "&lt;chat&gt;: 16 runs" in text
    assert "<chat>" not in text
    assert "from run 9 on, -19%" in text
    assert text.index("r16") < text.rindex("r01"), "the newest run stands first"
    assert "script-src &#39;none&#39;" in text


def test_runs_of_another_machine_are_not_drawn() -> None:
    other = [row(20, 5000.0, mark="other machine"), *TABLE]

    plots = list(drawn(other, []))

    assert len(plots) == 2
    assert "5000" not in plots[0]


def test_a_history_without_figures_has_its_table() -> None:
    text = page("p", [row(1, None, start=None)], [], [])

    assert "No figure changed its level for sure." in text
    assert "<svg" not in text
    assert "1 run<" in text
