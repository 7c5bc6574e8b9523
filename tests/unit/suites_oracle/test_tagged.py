"""What a model writes between tags: calls are found in each format, a type is told where it is one."""

from __future__ import annotations

from string import Template
from typing import TYPE_CHECKING, Any

import pytest

from suites.oracle.tagged import misread, tagged
from tests.unit.suites_oracle.grammars import grammars

if TYPE_CHECKING:
    from collections.abc import Mapping

PERIOD = {"type": "object", "properties": {"kind": {"enum": ["week"]}}, "required": ["kind"]}
PARAMETERS: dict[str, Any] = {
    "properties": {
        "when": {"$ref": "#/$defs/period"},
        "maybe": {"anyOf": [{"$ref": "#/$defs/period"}, {"type": "null"}]},
        "count": {"type": "integer"},
        "name": {"type": "string"},
        "either": {"type": ["string", "integer"]},
        "unusable": {"type": "banana"},
    },
    "$defs": {"period": PERIOD},
}
WROTE = {"city": "Oslo", "when": '{"kind": "week"}'}


def written(grammar: Mapping[str, Any]) -> str:
    """A call as a grammar of `fixtures/parsers/tool` writes it."""
    lines = (
        Template(grammar["argument"]).safe_substitute(key=key, value=value, text="true")
        for key, value in WROTE.items()
    )
    call = Template(grammar["call"]).safe_substitute(
        name="note_period", arguments=grammar.get("separator", "").join(lines)
    )
    return Template(grammar.get("around", "$calls")).safe_substitute(calls=call)


@pytest.mark.parametrize(("name", "grammar"), grammars())
def test_calls_are_found_in_every_format_of_tags(name: str, grammar: Mapping[str, Any]) -> None:
    ((called, texts),) = tagged(f"Let me see.\n{written(grammar)}")

    assert (called, {key: text.strip() for key, text in texts.items()}) == ("note_period", WROTE), name


@pytest.mark.parametrize(
    "raw", ["Plain words.", '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>', ""]
)
def test_where_a_call_is_json_or_none_there_are_no_tags(raw: str) -> None:
    assert tagged(raw) == []


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("when", '\n{"kind": "week"}\n', {"kind": "week"}),
        ("maybe", "null", None),
        ("count", "42", 42),
        ("name", "42", "42"),
        ("name", "\nAnn\n", "Ann"),
    ],
)
def test_a_value_of_its_type_is_right(key: str, text: str, said: object) -> None:
    assert misread(said, text, PARAMETERS, key) == ""


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("when", '{"kind": "week"}', '{"kind": "week"}'),
        ("maybe", '{"kind": "week"}', '{"kind": "week"}'),
        ("count", "42", "42"),
        ("count", "1", True),
        ("name", "42", 42),
    ],
)
def test_a_value_of_another_type_is_told(key: str, text: str, said: object) -> None:
    assert misread(said, text, PARAMETERS, key)


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("either", "42", "42"),
        ("either", "42", 42),
        ("count", "many", "many"),
        ("unusable", "42", "42"),
        ("unknown", "42", "42"),
    ],
)
def test_what_fits_as_both_or_as_neither_accuses_nobody(key: str, text: str, said: object) -> None:
    assert misread(said, text, PARAMETERS, key) == ""
