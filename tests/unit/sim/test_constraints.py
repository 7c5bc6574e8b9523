"""Structured output: answers obey schemas, patterns, choices and grammars; by version."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_vllm.sim.persona.pattern import example_of
from pytest_vllm.sim.persona.schema import Filler
from pytest_vllm.sim.persona.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.sim.client import Client

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 3},
        "age": {"type": "integer", "minimum": 18, "maximum": 20},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "maxItems": 3},
        "home": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/place"}]},
        "code": {"type": "string", "pattern": "^[A-Z]{2}-\\d{3}$"},
        "kind": {"const": "person"},
    },
    "required": ["name", "age", "tags", "home", "code", "kind"],
    "additionalProperties": False,
    "$defs": {"place": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
}
GRAMMAR = 'root ::= greeting " " ("world" | "moon") "!"?\ngreeting ::= "hello" | "bye"\n'


def form(schema: Any) -> dict[str, Any]:
    """The response format of a schema."""
    return {"type": "json_schema", "json_schema": {"name": "thing", "schema": schema}}


@pytest.mark.parametrize("stream", [False, True])
def test_a_schema_is_obeyed(sim: Client, stream: bool) -> None:
    """Whatever the prompt asks; streams too."""
    answer = sim.chat("Tell me a story.", response_format=form(SCHEMA), stream=stream)
    text = answer.text if stream else answer.json["choices"][0]["message"]["content"]

    jsonschema.validate(json.loads(text), SCHEMA)


def test_an_object_is_any_object(sim: Client) -> None:
    """response_format json_object."""
    assert isinstance(json.loads(sim.said("Hi", response_format={"type": "json_object"})), dict)


@pytest.mark.parametrize(
    ("constraint", "pattern"),
    [
        ({"regex": "[a-c]{3}-(x|yz)\\d{2,4}"}, r"[a-c]{3}-(x|yz)\d{2,4}"),
        ({"choice": ["red", "green"]}, "red|green"),
        ({"grammar": GRAMMAR}, "(hello|bye) (world|moon)!?"),
    ],
)
def test_other_constraints_are_obeyed(sim: Client, constraint: dict[str, Any], pattern: str) -> None:
    """In structured_outputs, over chat and completions."""
    said = sim.said("Hi", structured_outputs=constraint)
    written = sim.post("/v1/completions", prompt="Hi", structured_outputs=constraint).json["choices"][0][
        "text"
    ]

    assert re.fullmatch(pattern, said)
    assert re.fullmatch(pattern, written)


def test_old_names_hold_in_old_versions_alone(simulated: Callable[..., Client]) -> None:
    """guided_… until 0.11; later ones ignore the unknown field without a word."""
    old, new = (simulated("m", "--sim-version", version) for version in ("0.10.0", "0.32.0"))

    assert old.said("Tell me a story.", guided_choice=["red", "green"]) in ("red", "green")
    assert new.said("Tell me a story.", guided_choice=["red", "green"]) not in ("red", "green")


@pytest.mark.parametrize(
    "params",
    [
        {"response_format": form({"type": "strng"})},
        {"response_format": {"type": "json_schema"}},
        {"structured_outputs": {"regex": "["}},
        {"structured_outputs": {"grammar": "root = nonsense ["}},
        {"structured_outputs": {"choice": []}},
        {"structured_outputs": {"regex": "a", "choice": ["b"]}},
    ],
)
def test_a_wrong_constraint_is_refused(sim: Client, params: dict[str, Any]) -> None:
    """400, never 500 and never an answer that ignores it."""
    assert sim.chat("Hi", **params).status == 400


def test_a_cut_answer_is_the_beginning_of_a_right_one(sim: Client) -> None:
    """max_tokens ends it in the middle."""
    choice = sim.chat("Hi", response_format=form(SCHEMA), max_tokens=5).json["choices"][0]

    assert choice["finish_reason"] == "length"
    assert choice["message"]["content"].startswith("{")


ASKED = st.sampled_from(["Hi", "Alice is 31 years old and lives in Rome.", "Give me 7 of them"])
SIMPLE = st.one_of(
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.builds(
        lambda low, width: {"type": "integer", "minimum": low, "maximum": low + width},
        st.integers(-1000, 1000),
        st.integers(0, 50),
    ),
    st.builds(
        lambda low, width: {"type": "string", "minLength": low, "maxLength": low + width},
        st.integers(0, 40),
        st.integers(0, 9),
    ),
    st.builds(lambda values: {"enum": values}, st.lists(st.integers() | st.text(max_size=5), min_size=1)),
)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Lists, objects and alternatives of schemas."""
    return st.one_of(
        st.builds(
            lambda item, low, width: {
                "type": "array",
                "items": item,
                "minItems": low,
                "maxItems": low + width,
            },
            inner,
            st.integers(0, 3),
            st.integers(0, 3),
        ),
        st.builds(
            lambda fields: {
                "type": "object",
                "properties": fields,
                "required": sorted(fields),
                "additionalProperties": False,
            },
            st.dictionaries(st.text('abcdef\u00e9"\\ ', min_size=1, max_size=6), inner, max_size=4),
        ),
        st.builds(lambda members: {"anyOf": members}, st.lists(inner, min_size=1, max_size=3)),
    )


@settings(max_examples=200, deadline=None)
@given(schema=st.recursive(SIMPLE, nested, max_leaves=8), asked=ASKED)
def test_what_fills_a_schema_obeys_it(schema: dict[str, Any], asked: str) -> None:
    """For any schema of these kinds."""
    turn = Turn([{"role": "user", "content": asked}])
    jsonschema.validate(Filler(turn, schema).value(schema), schema)


@settings(max_examples=200, deadline=None)
@given(
    pattern=st.recursive(
        st.sampled_from(["a", "[b-d]", "\\d", "\\w", "[^x]", "\\.", " ", "(?:e|fg)"]),
        lambda inner: st.one_of(
            st.builds("{}{}".format, inner, inner),
            st.builds("(?:{}){}".format, inner, st.sampled_from(["?", "*", "+", "{2}", "{1,3}"])),
            st.builds("(?:{}|{})".format, inner, inner),
        ),
        max_leaves=8,
    ),
)
def test_an_example_of_a_pattern_matches_it(pattern: str) -> None:
    """For patterns of these kinds."""
    assert re.fullmatch(pattern, example_of(pattern), re.DOTALL)
