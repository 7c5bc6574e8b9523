"""Texts that can only be one: how they are asked for, and what of them is shown."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from pytest_vllm.declare.recordings import Recordings
from pytest_vllm.wire.recording import Recording, Request, Undecided
from suites.spelling.test_spelling import test_blanks as check_blanks
from suites.spelling.texts import ABSENT, CODE, LATE, LONG, PROMPT, SCRIPTS, WITHIN, only


def answered(text: str, *, finish: str = "stop", **asked: Any) -> Recordings:
    """The code, as a server tells it."""
    body = {"choices": [{"index": 0, "text": text, "finish_reason": finish}]}
    return Recordings.these(
        [
            Recording(
                "spelling.whole[code]",
                Request("POST", "/v1/completions", json={"prompt": PROMPT, **asked}),
                status=200,
                headers=(("content-type", "application/json"),),
                chunks=((0.1, json.dumps(body).encode()),),
            )
        ]
    )


@pytest.mark.parametrize("text", [CODE, SCRIPTS, LONG])
def test_an_expression_leaves_one_text(text: str) -> None:
    rule = only(text)["structured_outputs"]["regex"]

    assert re.fullmatch(rule, text)
    assert "\n" not in rule


def test_stops_begin_and_end_within_words() -> None:
    assert ABSENT not in CODE
    assert all(CODE.count(stop) == 1 for stop in (WITHIN, LATE))


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (CODE, {}),
        (f" {CODE}", {}),
        (PROMPT + CODE, {"echo": True}),
        (f"Write:{CODE}", {"echo": True}),
        (CODE.partition(WITHIN)[0], {"stop": [ABSENT, WITHIN]}),
        (CODE.partition(LATE)[0] + LATE, {"stop": [LATE], "include_stop_str_in_output": True}),
    ],
)
def test_what_is_right_is_taken(text: str, asked: dict[str, Any]) -> None:
    check_blanks(answered(text, **asked))


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (CODE.replace("\n    if", "\n   if"), {}),
        (CODE.replace("\t", " "), {}),
        (CODE[:-5], {}),
        (CODE.rstrip(), {}),
        (CODE, {"stop": [WITHIN]}),
        (CODE.partition(LATE)[0], {"stop": [LATE], "include_stop_str_in_output": True}),
        (CODE, {"echo": True}),
    ],
)
def test_another_text_is_a_failure(text: str, asked: dict[str, Any]) -> None:
    with pytest.raises(AssertionError, match="it can only be"):
        check_blanks(answered(text, **asked))


def test_what_was_cut_says_nothing_of_its_end() -> None:
    with pytest.raises(Undecided, match="more tokens"):
        check_blanks(answered(CODE[:50], finish="length"))
    with pytest.raises(AssertionError, match="it can only be"):
        check_blanks(answered("other", finish="length"))
