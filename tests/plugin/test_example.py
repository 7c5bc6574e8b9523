"""The example project: own tests of every kind are one GO, alone and beside other plugins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.running import Gate

EXAMPLE = Path(__file__).with_name("example")


def example() -> dict[str, str]:
    """The files of the example."""
    return {path.name: path.read_text("utf-8") for path in EXAMPLE.iterdir() if path.is_file()}


@pytest.mark.parametrize("more", [(), ("-n2",)], ids=["", "xdist"])
def test_all_kinds_of_own_tests_are_one_go(gate: Gate, more: tuple[str, ...]) -> None:
    run = gate("-p", "no:randomly", *more, files=example())

    assert run.exit == 0, run.text
    assert run.report["answer"]["answer"] == "GO"
    assert run.verdicts == {
        "mine.greeting.answered": "pass",
        "mine.answer.given[first]": "pass",
        "mine.answer.given[last]": "pass",
        "mine.timetable": "not-run",
        "mine.pulse": "pass",
        "mine.load.answered": "pass",
        "mine.trains": "pass",
        "mine.short": "pass",
        "mine.verbatim": "advisory",
    }
    rows = {row["check"]: row for row in run.report["results"]}
    assert rows["mine.trains"]["observations"]["score"].startswith("3 of 3 right (100 %; 95 % interval 44")
    assert rows["mine.short"]["observations"]["score"].startswith("6 of 6 right")
    assert rows["mine.verbatim"]["reason"].startswith("0 of 3 right (0 %; 95 % interval 0 to 56 %)")
    assert {row["family"] for row in rows.values() if "trains" in row["check"]} == {"capability"}
    assert [server["profile"] for server in run.report["servers"]] == ["mine"], "a side server is not judged"
    passed = [row["nodeid"] for row in run.report["own_tests"] if row["outcome"] == "passed"]
    assert len(passed) == 10


def test_an_own_load_is_measured_where_bundled_ones_are_left_out(gate: Gate) -> None:
    run = gate("--vllm-profile=sim", "mine_checks.py", "-k", "test_load", files=example())

    assert run.exit == 0, run.text
    assert run.report["results"][0]["observations"]["requests"] == "6", "the profile gives loads no time"


def test_without_pytests_terminal_there_is_a_verdict_all_the_same(gate: Gate) -> None:
    run = gate("-p", "no:terminal", "-k", "greeting", files=example())

    assert run.exit == 0, run.text
    assert run.report["answer"]["answer"] == "GO"


def test_a_missing_file_of_questions_is_pytests_error_before_the_boot(gate: Gate) -> None:
    files = {name: text for name, text in example().items() if name != "questions.jsonl"}

    run = gate(files=files)

    assert run.exit == 2, run.text
    assert "no questions.jsonl beside mine_checks.py nor above it" in run.text
    assert "vllm: ready" not in run.text
