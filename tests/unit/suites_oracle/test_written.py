"""What a model wrote against what its answer shows: marks may be missing, letters may not."""

from __future__ import annotations

import pytest

from suites.oracle.apis import Choice
from suites.oracle.written import objects, unlike


def said(text: str, *, stops: tuple[object, ...] = (None,)) -> Choice:
    return Choice(text, text, stops=stops)


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("Seven.", "Seven.<|im_end|>"),
        (" Seven.", "Seven."),
        ("I add. Twelve.", "<think>\nI add. </think>\n\nTwelve.<|im_end|>"),
        ("no", "[THINK]no[/THINK]"),
        ("torn", "t\ufffd"),
    ],
)
def test_what_only_marks_and_white_space_tell_apart_is_alike(text: str, raw: str) -> None:
    assert unlike(said(text), raw) == ""


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("Seven", "Seven."),
        ("Seven..", "Seven."),
        ("   Seven.", "Seven."),
        ("I add.", "<think>I add.</think>Twelve."),
    ],
)
def test_lost_and_added_letters_are_told(text: str, raw: str) -> None:
    assert unlike(said(text), raw)


def test_a_stop_string_cuts_what_comes_after_it() -> None:
    assert unlike(said("Sev", stops=("en",)), "Seven.") == ""
    assert unlike(said("Sex", stops=("en",)), "Seven.")


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ('<tool_call>\n{"name": "f", "arguments": {"a": true}}\n</tool_call>', [{"a": True}]),
        ('[{"name": "f", "parameters": {"a": 1}}, {"name": "g", "parameters": {}}]', [{"a": 1}, {}]),
        ('{"name": "f", "arguments": "{\\"a\\": 1}"}', [{"a": 1}]),
        ('f<sep>```json\n{"a": {"b": 2}}\n```', [{"a": {"b": 2}}]),
        ("<function=f><parameter=a>{x}</parameter></function>", []),
    ],
)
def test_arguments_are_read_where_they_are_json(raw: str, arguments: list[dict[str, object]]) -> None:
    assert objects(raw) == arguments
