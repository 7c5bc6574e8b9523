"""Response schemas: exported from openai's types, graded, with what vLLM is known to do otherwise."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from pytest_vllm.decide.verdict import Level
from pytest_vllm.locate import data_dir
from pytest_vllm.schemas import NAMES, schema_faults
from pytest_vllm.schemas.deviations import all_deviations, release
from tests.unit.suites_a.judging import real
from tools.schemas import build


def body(key: str) -> Any:
    return json.loads(real()[key].body)


def grades(schema: str, value: Any, version: str = "0.32.0") -> dict[str, Level]:
    return {fault.path: fault.level for fault in schema_faults(schema, value, version)}


@pytest.mark.parametrize(
    ("schema", "key"),
    [("chat.completion", "chat.plain"), ("completion", "completions.plain"), ("models", "models.list")],
)
def test_a_real_answer_has_no_fault(schema: str, key: str) -> None:
    assert schema_faults(schema, body(key), "0.32.0") == []


def test_missing_fields_and_wrong_types_must_not_be() -> None:
    answer = body("chat.plain")
    del answer["usage"]["total_tokens"]
    answer["choices"][0]["index"] = "0"
    answer["object"] = "chat"

    assert grades("chat.completion", answer) == {
        "choices[0].index": Level.MUST,
        "object": Level.MUST,
        "usage.total_tokens": Level.MUST,
    }


def test_messages_name_the_value() -> None:
    fault = schema_faults("chat.completion", {**body("chat.plain"), "object": "chat"})[0]

    assert str(fault) == "object: is 'chat', not 'chat.completion'"


def test_what_openai_always_sends_is_graded_by_row() -> None:
    answer = body("chat.plain")
    del answer["usage"]
    del answer["choices"][0]["logprobs"]

    assert grades("chat.completion", answer) == {"usage": Level.MUST, "choices[0].logprobs": Level.SHOULD}


def test_faults_come_gravest_first() -> None:
    answer = {**body("chat.plain"), "colour": 1, "object": "chat"}
    del answer["choices"][0]["logprobs"]

    levels = [fault.level for fault in schema_faults("chat.completion", answer)]

    assert levels == [Level.MUST, Level.SHOULD, Level.INFO]


def test_unknown_fields_are_recorded() -> None:
    assert grades("completion", {**body("completions.plain"), "colour": 1}) == {"colour": Level.INFO}


@pytest.mark.parametrize(
    ("version", "known"), [("0.15.1", True), ("0.16.0", False), ("", True), ("0.1.dev1+g3f2c", True)]
)
def test_extensions_have_versions(version: str, known: bool) -> None:
    answer = body("chat.plain")
    answer["choices"][0]["message"]["reasoning_content"] = "hm"

    seen = "choices[0].message.reasoning_content" in grades("chat.completion", answer, version)

    assert seen is not known


def test_an_extension_of_another_type_is_advised_against() -> None:
    answer = body("chat.plain")
    answer["choices"][0]["stop_reason"] = ["a"]

    assert grades("chat.completion", answer) == {"choices[0].stop_reason": Level.SHOULD}


def test_a_chunk_needs_its_finish_reason() -> None:
    choice = {"index": 0, "delta": {"content": "a", "tool_calls": []}}
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}

    assert grades("chat.completion.chunk", chunk) == {"choices[0].finish_reason": Level.MUST}


@pytest.mark.parametrize("reason", [None, "stop", "length"])
def test_a_streamed_completion_may_be_unfinished(reason: str | None) -> None:
    choice = {"index": 0, "text": "a", "finish_reason": reason}
    chunk = {"id": "1", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]}

    assert schema_faults("completion.chunk", chunk) == []


def test_an_empty_finish_reason_is_refused() -> None:
    answer = body("chat.plain")
    answer["choices"][0]["finish_reason"] = ""

    assert grades("chat.completion", answer) == {"choices[0].finish_reason": Level.MUST}


def test_the_first_echoed_token_has_no_log_probability() -> None:
    faults = schema_faults("completion", body("logprobs.echo"), "0.32.0")

    assert {fault.level for fault in faults} == {Level.INFO}
    assert "known of vLLM" in faults[0].message


FLAT = {"object": "error", "message": "no", "type": "BadRequestError", "param": None, "code": 400}


@pytest.mark.parametrize(
    ("value", "version", "expected"),
    [
        ({"error": {"message": "no", "type": "t", "param": None, "code": None}}, "0.32.0", {}),
        (
            {"error": {"message": "no", "type": "t", "param": None, "code": 400}},
            "0.32.0",
            {"error.code": Level.INFO},
        ),
        ({"error": {"message": "no", "code": 400}}, "0.32.0", {"error.type": Level.MUST}),
        ({"error": "Unauthorized"}, "0.32.0", {"error": Level.SHOULD}),
        ({"detail": "Not Found"}, "0.32.0", {"error": Level.SHOULD}),
        (FLAT, "0.10.0", {"error": Level.SHOULD}),
        (FLAT, "0.10.1", {"error": Level.MUST}),
    ],
)
def test_error_envelopes_by_version(value: Any, version: str, expected: dict[str, Level]) -> None:
    found = grades("error", value, version)

    assert {path: level for path, level in found.items() if path in expected} == expected
    assert Level.MUST not in found.values() or Level.MUST in expected.values()


@pytest.mark.parametrize("value", [[], "text", None, 3])
def test_what_is_no_object_is_refused(value: Any) -> None:
    assert grades("chat.completion", value)[""] is Level.MUST


def test_an_unknown_schema_is_named() -> None:
    with pytest.raises(KeyError, match=r"known: chat\.completion"):
        schema_faults("chat", {})


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("0.32.0", (0, 32, 0)), ("0.11.1rc2.dev3+cpu", (0, 11, 1)), ("v1.2", (1, 2, 0)), ("main", (0, 0, 0))],
)
def test_versions_compare_by_number(version: str, numbers: tuple[int, int, int]) -> None:
    assert release(version) == numbers


def test_the_committed_schemas_are_what_openai_gives() -> None:
    folder = data_dir("fixtures") / "schemas"
    committed = {name: json.loads((folder / name).read_text("utf-8")) for name in build()}
    told = next(iter(committed.values()))["$comment"]
    if told != f"exported from openai {openai.__version__}":
        pytest.skip(f"the committed schemas are {told}, installed is {openai.__version__}")

    assert committed == build()


def test_every_deviation_is_sourced_and_concerns_a_schema() -> None:
    rows = all_deviations()

    assert all(row.source and row.why for row in rows)
    assert {name for row in rows for name in row.schemas} <= set(NAMES)
    assert {row.kind for row in rows} == {"extra", "missing", "type"}
