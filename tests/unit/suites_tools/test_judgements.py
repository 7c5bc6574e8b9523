"""What is said against calls, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from suites.tools.answers import Call, answer
from suites.tools.judgements import (
    differences,
    first_deltas,
    index_faults,
    later_deltas,
    object_fault,
    same,
    schema_fault,
    unlike,
)
from tests.unit.suites_tools.answers import call, piece, stream, whole

SCHEMAS = {"f": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}}


@pytest.mark.parametrize(
    ("arguments", "faulty"),
    [
        ("{}", False),
        ('{"a": 1}', False),
        ("", True),
        ('{"a": 1', True),
        ("[1]", True),
        ('"a"', True),
        ("null", True),
    ],
)
def test_arguments_are_an_object(arguments: str, faulty: bool) -> None:
    assert bool(object_fault(Call("f", arguments))) is faulty


@pytest.mark.parametrize(
    ("arguments", "faulty"),
    [('{"x": 1}', False), ('{"x": "1"}', True), ("{}", True), ("broken", False)],
)
def test_arguments_fit_their_schema(arguments: str, faulty: bool) -> None:
    """What is no JSON is another judgement's business."""
    assert bool(schema_fault(Call("f", arguments), SCHEMAS)) is faulty


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (None, False, False),
        ("1", 1, False),
        ([1, "a"], [1, "a"], True),
        ([1, 2], [2, 1], False),
        ({"a": True}, {"a": 1}, False),
        ({"a": [None]}, {"a": [None]}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
    ],
)
def test_values_are_compared_by_type(one: Any, other: Any, equal: bool) -> None:
    assert same(one, other) is equal
    assert same(other, one) is equal


def test_calls_are_compared_with_what_was_meant() -> None:
    calls = [Call("f", '{"x": 1}'), Call("g", "{}")]

    assert differences(calls, [("f", {"x": 1}), ("g", {})]) == []
    assert "2 calls" in differences(calls, [("f", {"x": 1})])[0]
    assert "names 'f', not 'g'" in differences(calls, [("g", {}), ("f", {})])[0]
    assert '"x": 2' in differences(calls, [("f", {"x": 2}), ("g", {})])[0]


def test_modes_are_compared_as_json() -> None:
    told = answer(whole({"content": None, "tool_calls": [call("f", '{"x":1}')]}))

    assert unlike(told, answer(stream(piece(0, '{ "x": 1 }', name="f", id="a")))) == []
    assert unlike(told, answer(stream(piece(0, '{"x": 1', name="f", id="a"))))
    assert unlike(told, answer(stream({"content": "no call"}))) == ["streamed 0 calls, whole 1"]


def test_first_and_later_deltas_are_told_apart() -> None:
    recording = stream(piece(0, name="f", id="a"), piece(0, "{"), piece(1, name="g", id="b"), piece(0, "}"))

    assert [part["id"] for part in first_deltas(recording)] == ["a", "b"]
    assert [part["function"] for part in later_deltas(recording)] == [{"arguments": "{"}, {"arguments": "}"}]


@pytest.mark.parametrize(
    ("parts", "faulty"),
    [
        ([piece(0, name="f", id="a"), piece(1, name="g", id="b"), piece(0, "}")], False),
        ([piece(0, name="f", id="a"), piece(0, "{", id="a")], False),
        ([piece(0, name="f", id="a"), piece(0, name="g", id="b")], True),
        ([piece(1, name="f", id="a")], True),
        ([piece(None, name="f", id="a")], True),
        ([piece(0, name="f", id="a"), piece(2, name="g", id="b")], True),
    ],
)
def test_indices_count_up_and_belong_to_one_call(parts: list[dict[str, Any]], faulty: bool) -> None:
    assert bool(index_faults(stream(*parts))) is faulty
