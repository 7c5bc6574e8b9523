"""Patterns of a table that are searched only where they can match: never an answer less, and few searches."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.launch import guarded
from pytest_vllm.launch.causes import causes, shapes
from pytest_vllm.launch.diagnosis import diagnose
from pytest_vllm.launch.guarded import Shapes, needed
from pytest_vllm.launch.kinds import kinds, line_kinds
from pytest_vllm.launch.logtext import spread, unprefixed
from pytest_vllm.launch.notable import rows, startup_warnings

if TYPE_CHECKING:
    import re

LOGS = Path(__file__).with_name("logs")
#: One of so many held logs is compared line by line.
_EACH = 9


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("out of memory", ("out of memory",)),
        (r"CUDA out of \d+", ("CUDA out of ",)),
        ("Killed|Aborted", ("Aborted", "Killed")),
        (r"(?:Killed|Aborted) by \w+", ("Aborted", "Killed")),
        (r"(?:not )?found \w+ here", ("found ",)),
        (r"colou?rs of the sky", ("rs of the sky",)),
        (r"sorrys* (?P<what>Exception)", ("Exception",)),
        (r"\[core\.py:\d+\]", ("[core.py:",)),
        (r"(?=Traceback)\w+", ()),
        (r"(?!Traceback)Engine", ("Engine",)),
        (r"Killed|\d+", ()),
        (r"(?i)killed", ()),
        (r"(?i:killed) quickly", (" quickly",)),
        (r"[abc]Worker[^]]x", ("Worker",)),
        (r"one{0,2} two{1,3}", (" two",)),
    ],
)
def test_the_words_of_a_pattern(pattern: str, words: tuple[str, ...]) -> None:
    """Every text that the pattern matches holds one of them."""
    assert needed(pattern) == words


def test_patterns_in_their_order() -> None:
    """The first row that matches counts, wherever its words stand in the line."""
    patterns = Shapes(["second thing", r"\d{4}", "first thing"])
    assert [n for n, _ in patterns.fitting("first thing, then the second thing of 2026")] == [0, 1, 2]
    assert [n for n, _ in patterns.fitting("first thing")] == [2]


def _lines() -> list[str]:
    logs = [
        case["log"]
        for path in sorted(LOGS.glob("unseen-*.toml"))
        for case in tomllib.loads(path.read_text("utf-8"))["case"]
    ]
    examples = [*(cause.example for cause in causes()), *(row.example for row in rows())]
    return [*examples, *(text for log in logs[::_EACH] for _, text in spread(log.splitlines()))]


def test_the_tables_find_what_a_search_of_every_pattern_finds() -> None:
    """Causes, kinds of lines and warnings of start-ups, over the lines of held logs."""
    known, patterns = shapes(ran=False)
    told = [kind for kind in kinds() if kind.line is not None]
    for line in set(_lines()):
        every = [n for n, cause in enumerate(known) if cause.pattern.search(line)]
        assert [n for n, _ in patterns.fitting(line)] == every, line
        bare = unprefixed(line)
        assert [*line_kinds(bare)] == [kind for kind in told if kind.line and kind.line.search(bare)], line
        first = next((row.id for row in rows() if row.pattern.search(line)), None)
        assert [one.id for one in startup_warnings([line])] == ([first] if first else []), line


def test_most_lines_of_a_log_are_searched_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a page of prose each line is looked at by a few patterns only."""
    tried = 0

    def counted(pattern: re.Pattern[str]) -> object:
        def search(line: str) -> re.Match[str] | None:
            nonlocal tried
            tried += 1
            return pattern.search(line)

        return search

    known, patterns = shapes(ran=False)
    monkeypatch.setattr(patterns, "_searches", [counted(cause.pattern) for cause in known])
    page = [
        f"The engine of train {n} had no memory of the station that it left an hour ago" for n in range(500)
    ]
    assert not [found for line in page for found in patterns.fitting(line)]
    assert tried < len(page) * len(known) // 20


def test_a_log_that_was_read_is_let_go() -> None:
    """What is remembered of its lines goes with it."""
    diagnose(["RuntimeError: something", "INFO 11-27 20:50:01 [x.py:1] Starting to load model m..."])
    assert guarded._hits.cache_info().currsize == 0  # type: ignore[attr-defined]
