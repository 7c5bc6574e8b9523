"""Whole and cut JSON texts are told apart from texts that are neither."""

from __future__ import annotations

import json

import pytest

from suites.structured.jsontext import cut_fault, schema_fault

WHOLE = '{"a": [1, -2.5e+3, true, null], "größe \\" \\\\ \\n \\u00e9": {"b": ""}, "c": "x"}'
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}, "required": ["n"]}


@pytest.mark.parametrize("length", range(len(WHOLE) + 1))
def test_every_beginning_of_a_json_text_may_go_on(length: int) -> None:
    json.loads(WHOLE)

    assert cut_fault(WHOLE[:length]) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Sure",
        "{{",
        '{"a": 1}{"a": 1}',
        '{"a" 1',
        '{"a": tru e',
        '{"a": "\\x',
        '{"a": 1,}',
        "[1 2",
        "```json",
        '{""a',
        '{"a": yes',
    ],
)
def test_a_text_that_no_json_begins_with_is_told(text: str) -> None:
    assert cut_fault(text)


def test_white_space_alone_may_become_json() -> None:
    assert cut_fault("{\n\n\n\n") == "" == cut_fault(" \n")


@pytest.mark.parametrize("text", ['{"n": 3}', ' {"n":9}\n'])
def test_a_value_within_its_schema_has_no_fault(text: str) -> None:
    assert schema_fault(text, SCHEMA) == ""


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('{"n": 10}', "maximum"),
        ("{}", "required"),
        ('{"n": 3', "no JSON"),
        ('{"n": 3} ok', "no JSON"),
        ("", "no JSON"),
    ],
)
def test_a_value_outside_its_schema_is_told_why(text: str, word: str) -> None:
    assert word in schema_fault(text, SCHEMA)
