"""The census: what requests asked, and what is counted as asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_vllm.facts.reach import BODIES, dimensions, request_fields, unsent
from pytest_vllm.report.asked import clients, numbers_of, scripts, words_of
from pytest_vllm.report.reach import reach_of
from pytest_vllm.report.reachtext import reach_lines
from pytest_vllm.wire.recording import Recording, Request

CHAT = "/v1/chat/completions"
USAGE = {"prompt_tokens": 7, "completion_tokens": 3}


def recording(key: str, body: Any, status: int = 200, path: str = CHAT, **more: Any) -> Recording:
    answer = json.dumps({"usage": USAGE}).encode()
    request = Request("POST", path, json=body, headers=more.pop("headers", {}))
    return Recording(key, request, status=status, chunks=((0.1, answer),), **more)


def test_a_field_that_is_null_is_not_sent() -> None:
    found = reach_of([recording("a", {"messages": [], "seed": None, "n": 2})], "0.32.0").fields[CHAT]

    assert {"messages", "n"} <= found.sent
    assert "seed" in found.missing


def test_a_field_that_was_only_refused_is_named() -> None:
    found = reach_of([recording("a", {"messages": [], "n": -1}, status=400)], "0.32.0")

    assert found.plain()["routes"][CHAT]["only refused"] == ["messages", "n"]


def test_a_field_of_a_later_version_is_not_missed() -> None:
    assert "watermarking" not in reach_of([], "0.27.0").fields[CHAT].served
    assert "watermarking" in reach_of([], "0.32.0").fields[CHAT].served


def test_what_was_refused_has_no_size() -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}], "n": 1_000_000}

    assert numbers_of(recording("a", body, status=400)) == {}
    assert numbers_of(recording("a", body))["choices"] == 1_000_000


@pytest.mark.parametrize(
    ("turns", "results"),
    [
        ([{"role": "tool", "content": "x"}], 1),
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "content": "x"}, {"type": "text", "text": "y"}],
                }
            ],
            1,
        ),
        (
            [
                {"type": "function_call_output", "output": "x"},
                {"type": "custom_tool_call_output", "output": "x"},
            ],
            2,
        ),
        ([{"role": "user", "content": "tool"}], 0),
    ],
)
def test_tool_results_count_in_every_shape(turns: list[Any], results: int) -> None:
    assert numbers_of(recording("a", {"messages": turns}))["results"] == results


def test_tokens_come_from_the_answer() -> None:
    found = numbers_of(recording("a", {"messages": [{"role": "user", "content": "Hi"}]}))

    assert (found["prompt"], found["output"]) == (7, 3)


def test_a_batch_of_ids_is_one_prompt() -> None:
    assert numbers_of(recording("a", {"prompt": [1, 2, 3]}, path="/v1/completions"))["batch"] == 1
    assert numbers_of(recording("a", {"prompt": [[1], [2]]}, path="/v1/completions"))["batch"] == 2


def test_scripts_are_those_of_the_letters() -> None:
    assert scripts({"a": ["สวัสดี ok", {"b": "👍"}]}) == {"THAI", "LATIN", "emoji"}


def test_headers_name_their_client() -> None:
    assert clients({"X-Stainless-Lang": "python", "Traceparent": "00"}) == {"openai sdk", "trace"}
    assert clients({"Authorization": None}) == {"plain"}


@pytest.mark.parametrize(
    ("body", "constraint"),
    [
        ({"response_format": {"type": "json_schema"}}, "json schema"),
        ({"text": {"format": {"type": "json_object"}}}, "json object"),
        ({"structured_outputs": {"regex": "a"}}, "regex"),
        ({"guided_choice": ["a"]}, "choice"),
        ({"text": {"verbosity": "low"}}, "none"),
    ],
)
def test_constraints_count_in_every_spelling(body: dict[str, Any], constraint: str) -> None:
    assert words_of(recording("a", {"messages": [], **body}))["constraint"] == {constraint}


def test_requests_in_flight_rest_and_repetition() -> None:
    body: dict[str, Any] = {"messages": []}
    first = recording("a", body, sent=100.0, seconds=2.0)
    beside, later = (
        recording("b", body, sent=101.0, seconds=0.5),
        recording("c", body, sent=109.0, seconds=1.0),
    )
    found = reach_of([later, beside, first], "0.32.0").maxima

    assert found["beside"] == (1, "b")
    assert found["again"] == (3, "c")
    assert found["idle"] == (7.0, "c")


def test_pairs_are_of_values_that_one_request_had() -> None:
    one = recording("a", {"messages": [], "stream": True, "temperature": 0})
    found = reach_of(
        [one, recording("b", {"prompt": "x", "temperature": 1}, path="/v1/completions")], "0.32.0"
    )

    assert ("route", CHAT, "answer", "stream") in found.pairs
    assert ("route", CHAT, "answer", "whole") not in found.pairs
    assert 0 < len(found.pairs) < found.countable


def test_every_number_has_a_place() -> None:
    for dimension in dimensions():
        if dimension.bounds:
            places = {dimension.place(value) for value in (0, *dimension.bounds, dimension.bounds[-1] + 1)}
            assert places <= set(dimension.counted)
            assert dimension.counted[-1] in places


def test_the_text_names_what_is_missing_and_why() -> None:
    text = "\n".join(reach_lines(reach_of([recording("a", {"messages": []})], "0.32.0")))

    assert "never sent: seed" in text
    assert f"never sent: kv_transfer_params ({unsent()['kv_transfer_params']})" in text


def test_a_reason_is_for_a_field_that_is_served() -> None:
    served = {name for route in BODIES for name in request_fields(route)}

    assert set(unsent()) <= served
