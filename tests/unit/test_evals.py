"""Questions with known answers: files, scorers, floors, and what is right, wrong or not known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.declare.evals import Floor, Score, read_questions, scored, scorer_of, wilson
from pytest_vllm.wire.recording import Recording, Request, Undecided

if TYPE_CHECKING:
    from pathlib import Path


def answer(text: str, ended: str = "stop", status: int = 200) -> Recording:
    body = json.dumps({"choices": [{"message": {"content": text}, "finish_reason": ended}]}).encode()
    return Recording("q", Request("POST", "/v1/chat/completions"), status=status, chunks=((0.1, body),))


@pytest.mark.parametrize(
    ("right", "total", "low", "high"), [(17, 20, 0.640, 0.948), (0, 10, 0.0, 0.278), (20, 20, 0.839, 1.0)]
)
def test_wilsons_interval(right: int, total: int, low: float, high: float) -> None:
    """Figures of the published formula."""
    assert wilson(right, total) == pytest.approx((low, high), abs=0.001)


@pytest.mark.parametrize(
    ("floor", "right", "total", "unanswered", "said"),
    [
        ("18 of 20", 18, 20, 0, "held"),
        ("18 of 20", 17, 20, 0, "below"),
        ("18 of 20", 17, 20, 1, "open"),
        ("18 of 20", 18, 20, 2, "held"),
        ("18 of 20", 15, 20, 2, "below"),
        ("18 of 20", 36, 40, 0, "held"),
        ("18 of 20", 35, 40, 0, "below"),
        ("90 %", 18, 20, 0, "held"),
        ("90 %", 17, 20, 0, "open"),
        ("90 %", 12, 20, 0, "below"),
        ("90 %", 12, 20, 8, "open"),
        ("100 %", 20, 20, 0, "held"),
        ("0 of 3", 0, 3, 0, "held"),
        ("0 of 3", 0, 3, 3, "held"),
        ("1 of 3", 0, 3, 3, "open"),
    ],
)
def test_what_a_floor_says(floor: str, right: int, total: int, unanswered: int, said: str) -> None:
    score = Score(right, total, Floor.of(floor), ("q: no",), tuple("q: 500" for _ in range(unanswered)))

    if said == "held":
        score.judge()
    else:
        raised = {"below": AssertionError, "open": Undecided}[said]
        with pytest.raises(raised, match=f"{right} of {total} right"):
            score.judge()


@pytest.mark.parametrize("floor", ["", "20 of 18", "1 of 0", "most", "101 %", "0.9"])
def test_a_floor_that_is_none(floor: str) -> None:
    with pytest.raises(ValueError, match="18 of 20"):
        Floor.of(floor)


@pytest.mark.parametrize(
    ("scoring", "row", "text", "right"),
    [
        ("exact", {"ideal": "Paris"}, " Paris\n", True),
        ("exact", {"ideal": "Paris"}, "Paris.", False),
        ("exact", {"ideal": ["Paris", "paris"]}, "paris", True),
        ("includes", {"ideal": "Paris"}, "It is Paris.", True),
        ("regex", {"ideal": "(?i)^paris\\b"}, "PARIS it is", True),
        ("regex", {"ideal": "^paris"}, "It is paris", False),
        ("schema", {"schema": {"type": "object", "required": ["a"]}}, '{"a": 1}', True),
        ("schema", {"schema": {"type": "object", "required": ["a"]}}, '{"b": 1}', False),
        ("schema", {"schema": {"type": "object"}}, "no JSON", False),
        (lambda text, row: len(text) == row["n"], {"n": 3}, "abc", True),
    ],
)
def test_scorers(scoring: Any, row: dict[str, Any], text: str, right: bool) -> None:
    rows = [{"id": "q", "input": "?", **row}]

    score = scored({"q": (rows[0], answer(text))}, scorer_of(scoring, rows), Floor.of("1 of 1"))

    assert (score.right, bool(score.wrong)) == (int(right), not right)


@pytest.mark.parametrize(
    "recording",
    [answer("", "length"), answer("Paris", status=500), Undecided("q was not recorded in this run")],
    ids=["reasoned-to-the-end", "refused", "not-recorded"],
)
def test_what_was_not_answered_is_not_wrong(recording: Recording | Exception) -> None:
    rows = [{"id": "q", "input": "?", "ideal": "Paris"}]

    score = scored({"q": (rows[0], recording)}, scorer_of("exact", rows), Floor.of("1 of 1"))

    assert (score.right, score.wrong, len(score.unanswered)) == (0, (), 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no questions"),
        ("{broken\n", ":1: not JSON"),
        ('{"input": "a"}\n\n{"question": "b"}\n', ":3: a question is an object"),
        ('{"id": 1, "input": "a"}\n{"id": "1", "input": "b"}\n', "the id 1 is given twice"),
    ],
)
def test_a_file_that_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "q.jsonl").write_text(text, "utf-8")

    with pytest.raises(ValueError, match=said):
        read_questions(tmp_path / "q.jsonl")


def test_a_question_without_what_its_scorer_needs() -> None:
    with pytest.raises(ValueError, match="question 7 has no `ideal`"):
        scorer_of("exact", [{"id": "7", "input": "?"}])
