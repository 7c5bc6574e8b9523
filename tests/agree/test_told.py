"""What is compared, and what a model's doing leaves out."""

from __future__ import annotations

import json
from typing import Any

from pytest_vllm.wire.recording import Recording, Request
from tests.agree.accepted import ACCEPTED, as_listed
from tests.agree.compare import differences
from tests.agree.told import as_json, from_json, told
from tests.contract.imports import ROOT

README = " ".join((ROOT / "pytest_vllm" / "sim" / "README.md").read_text("utf-8").split())
JSON = ("content-type", "application/json")
SSE = ("content-type", "text/event-stream; charset=utf-8")


def answer(body: Any, status: int = 200, **request: Any) -> dict[str, str]:
    """What a JSON answer tells."""
    chunks = ((0.1, json.dumps(body).encode()),)
    sent = Request("POST", "/v1/chat/completions", json=request)
    return told(Recording("x", sent, status, (JSON,), chunks))


def stream(*choices: Any, done: bool = True) -> dict[str, str]:
    """What a chat stream with such choices tells."""
    lines = [f"data: {json.dumps({'choices': one})}\n\n" for one in choices]
    text = "".join(lines) + "data: [DONE]\n\n" * done
    sent = Request("POST", "/v1/chat/completions", json={"stream": True})
    return told(Recording("x", sent, 200, (SSE,), ((0.1, text.encode()),)))


def parts(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """The parts in which two answers differ."""
    return [difference.part for difference in differences({"x": one}, {"x": other})]


ROLE = [{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}]
TEXT = [{"delta": {"content": "a"}, "finish_reason": None}]
STOP = [{"delta": {}, "finish_reason": "stop"}]
LENGTH = [{"delta": {"content": "b"}, "finish_reason": "length"}]


def test_texts_and_counts_are_the_models() -> None:
    assert parts(answer({"a": "x", "n": [1, 2]}), answer({"a": "y", "n": [3]})) == []


def test_a_type_a_key_and_a_null_are_the_servers() -> None:
    assert parts(answer({"a": 1}), answer({"a": 1.5})) == ["body .a"]
    assert parts(answer({"a": None}), answer({})) == ["body .a"]
    assert parts(answer({"a": None}), answer({"a": "x"})) == ["body .a"]


def test_a_part_that_is_missing_is_one_difference() -> None:
    assert parts(answer({"a": {"b": 1, "c": [2]}}), answer({})) == ["body .a"]


def test_another_status_is_one_difference() -> None:
    assert parts(answer({"error": {"message": "no"}}, 400), answer({"id": "x"})) == ["status"]


def test_messages_are_compared_but_for_numbers_of_tokens() -> None:
    def refused(text: str) -> dict[str, str]:
        return answer({"error": {"message": text}}, 400)

    assert parts(refused("at most 40 tokens"), refused("at most 41 tokens")) == []
    assert parts(refused("n must be 1"), refused("n must be 2")) == ["body .error.message"]


def test_how_long_a_stream_is_and_why_it_ends_is_the_models() -> None:
    assert parts(stream(ROLE, TEXT, TEXT, STOP), stream(ROLE, TEXT, LENGTH)) == []


def test_the_order_of_a_stream_is_the_servers() -> None:
    assert parts(stream(ROLE, TEXT, STOP), stream(TEXT, ROLE, STOP)) == ["order"]
    assert parts(stream(ROLE, TEXT, STOP), stream(ROLE, TEXT, STOP, done=False)) == ["last", "order"]
    assert parts(stream(ROLE, TEXT, STOP), stream(ROLE, TEXT, STOP, [])) == ["order"]


def test_a_model_that_is_free_to_call_may_talk() -> None:
    called = {"choices": [{"message": {"tool_calls": []}, "finish_reason": "tool_calls"}]}
    talked = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}

    assert parts(answer(called, tools=[{}]), answer(talked, tools=[{}])) == []
    assert parts(
        answer(called, tools=[{}], tool_choice="required"), answer(talked, tools=[{}], tool_choice="required")
    )


def test_an_exchange_of_one_alone_is_a_difference() -> None:
    assert [one.part for one in differences({"x": answer({})}, {})] == ["exchange"]


def test_what_is_kept_is_read_as_it_was() -> None:
    told_twice = {"x": answer({"a": 1}), "y": answer({"a": 1}), "z": answer({"a": "b"})}

    assert from_json(as_json(told_twice)) == told_twice


def test_the_readme_of_the_simulator_lists_what_remains() -> None:
    """Every accepted difference, with its reason and how often; and no other."""
    listed = README.split("Of the suites' exchanges")[1].split("Of what no exchange")[0]

    assert ACCEPTED
    assert [line for line in as_listed() if line not in listed] == []
    assert listed.count("- **") == len(ACCEPTED)


def test_where_a_client_leaves_is_chance() -> None:
    """It may be in the middle of an event; a server that ends there is cut."""
    half = f"data: {json.dumps({'choices': TEXT})}\n\ndata: {{".encode()
    sent = Request("POST", "/v1/chat/completions", json={"stream": True})
    ended, left = (Recording("x", sent, 200, (SSE,), ((0.1, half),), aborted=one) for one in (False, True))

    assert "cut" in told(ended)
    assert "cut" not in told(left)


def test_which_tokens_are_parts_of_a_letter_is_the_texts_doing() -> None:
    """A part has no bytes, in a stream that has some as in one that has none."""
    whole = {"token": "a", "bytes": [97], "top_logprobs": [{"token": "a", "bytes": [97]}]}
    torn = {"token": "", "bytes": [], "top_logprobs": [{"token": "", "bytes": []}]}
    pieces = [[{"delta": {"content": "a"}, "logprobs": {"content": [one]}}] for one in (whole, torn)]

    assert parts(stream(pieces[0], STOP), stream(*pieces, STOP)) == []
