"""What is asked of every answer: odd things that real servers do are allowed, what is wrong is named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_vllm.wire.recording import NotRun, Recording, Request
from suites.embeddings.test_every import test_billed as batches_billed
from suites.errors.test_every import test_code as codes_alike
from suites.errors.test_every import test_shape as errors_shaped
from suites.logprobs.test_every import test_bytes as bytes_right
from suites.logprobs.test_every import test_sorted as candidates_sorted
from suites.metrics.test_every import test_grows as counters_grow
from suites.oracle.test_promised import test_told as ends_told
from suites.reasoning.test_every import test_tags as marks_kept_out
from suites.structured.test_every import test_kept as constraints_kept
from suites.tools.test_every import test_ids as ids_differ
from tests.unit.judging import Played, server

if TYPE_CHECKING:
    from pytest_vllm.declare.recordings import Recordings

CHAT = "/v1/chat/completions"
JSON = (("content-type", "application/json"),)


def played(*rows: tuple[str, dict[str, Any], int, Any]) -> Recordings:
    """Recordings of (path, request, status, body)."""
    found = {}
    for at, (path, asked, status, body) in enumerate(rows):
        request, chunks = Request("POST", path, json=asked), ((0.1, json.dumps(body).encode()),)
        found[f"a.{at}"] = Recording(f"a.{at}", request, status, JSON, chunks, sent=float(at))
    return cast("Recordings", Played(found))


def chat(asked: dict[str, Any], message: dict[str, Any], finish: str = "stop", **more: Any) -> Recordings:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish, **more}
    usage = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
    body = {"id": "x", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return played((CHAT, {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **asked}, 200, body))


def scored(*values: float, said: str = "a", **asked: Any) -> Recordings:
    tops = [{"token": said if at == 0 else str(at), "logprob": value} for at, value in enumerate(values)]
    row = {"token": said, "logprob": values[0], "bytes": list(said.encode()), "top_logprobs": tops}
    return chat({"logprobs": True, **asked}, {"content": said}, logprobs={"content": [row]})


def test_a_drawn_token_may_come_before_the_likelier_ones() -> None:
    candidates_sorted(vllm_recordings=scored(-5.0, -0.1, -3.0))
    with pytest.raises(AssertionError, match=r"a\.0"):
        candidates_sorted(vllm_recordings=scored(-5.0, -3.0, -0.1))


def test_candidates_that_were_asked_for_by_id_come_in_the_order_of_the_request() -> None:
    with pytest.raises(NotRun):
        candidates_sorted(vllm_recordings=scored(-0.1, -9.0, -3.0, logprob_token_ids=[5, 3]))


def test_bytes_of_a_part_of_a_character_are_not_judged() -> None:
    bytes_right(vllm_recordings=scored(-0.1, said="naïve"))
    with pytest.raises(NotRun):
        bytes_right(vllm_recordings=scored(-0.1, said="\ufffd"))


@pytest.mark.parametrize(("text", "right"), [("heron", True), ("heron ", False), ("crane", False)])
def test_the_word_of_a_choice_is_exact(text: str, right: bool) -> None:
    said = chat({"structured_outputs": {"choice": ["heron"]}}, {"content": text})
    if right:
        constraints_kept(vllm_recordings=said, vllm_server=server())
        return
    with pytest.raises(AssertionError, match="none of 1 words"):
        constraints_kept(vllm_recordings=said, vllm_server=server())


def test_an_answer_that_its_limit_ended_may_break_off_within_its_constraint() -> None:
    cut = chat({"structured_outputs": {"choice": ["heron"]}}, {"content": "her"}, "length")
    with pytest.raises(NotRun):
        constraints_kept(vllm_recordings=cut, vllm_server=server())


def test_a_text_of_the_only_token_was_ended_by_the_limit() -> None:
    ends_told(vllm_recordings=chat({"max_tokens": 1}, {"content": "I"}, "length"))
    with pytest.raises(NotRun):  # its end is the only token
        ends_told(vllm_recordings=chat({"max_tokens": 1}, {"content": ""}))
    with pytest.raises(AssertionError, match="only token"):
        ends_told(vllm_recordings=chat({"max_tokens": 1}, {"content": "I"}))


def test_calls_of_one_answer_have_ids_of_their_own() -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}] * 2
    with pytest.raises(AssertionError, match=r"a\.0"):
        ids_differ(
            vllm_recordings=chat({"tools": [{}]}, {"content": None, "tool_calls": calls}, "tool_calls")
        )


def refusals(*codes: Any) -> Recordings:
    errors = [
        {"error": {"message": "no", "type": "BadRequestError", "param": None, "code": c}} for c in codes
    ]
    return played(*((CHAT, {}, 400, error) for error in errors))


def test_codes_are_the_status_and_of_one_type_whatever_it_is() -> None:
    codes_alike(vllm_recordings=refusals(400, 400))
    codes_alike(vllm_recordings=refusals("400", "400"))
    for codes in ((400, "400"), (400, 422)):
        with pytest.raises(AssertionError, match=r"a\.1"):
            codes_alike(vllm_recordings=refusals(*codes))


def test_an_error_without_a_code_says_by_its_type_that_it_is_one() -> None:
    inner = {"error": {"message": "no", "type": "invalid_request_error"}}
    errors_shaped(
        vllm_server=server(), vllm_recordings=played(("/v1/messages", {}, 400, {"type": "error", **inner}))
    )
    with pytest.raises(AssertionError, match=r"a\.0"):
        errors_shaped(vllm_server=server(), vllm_recordings=played(("/v1/messages", {}, 400, inner)))


def embedded(*rows: tuple[list[str], int]) -> Recordings:
    usage = [{"usage": {"prompt_tokens": count, "total_tokens": count}} for _, count in rows]
    asked = [{"input": texts} for texts, _ in rows]
    return played(*(("/v1/embeddings", one, 200, said) for one, said in zip(asked, usage, strict=True)))


@pytest.mark.parametrize(
    ("count", "right"), [(7, True), (6, False), (8, False)], ids=["their-sum", "less", "more"]
)
def test_a_batch_costs_what_its_texts_cost(count: int, right: bool) -> None:
    said = embedded((["a"], 3), (["b"], 4), (["a", "b"], count))
    if right:
        batches_billed(vllm_recordings=said)
        return
    with pytest.raises(AssertionError, match=r"a\.2"):
        batches_billed(vllm_recordings=said)


def test_a_batch_with_texts_that_were_not_sent_alone_costs_more_than_those_that_were() -> None:
    batches_billed(vllm_recordings=embedded((["a"], 3), (["a", "b"], 9)))
    with pytest.raises(AssertionError, match=r"a\.1"):
        batches_billed(vllm_recordings=embedded((["a"], 3), (["a", "b"], 3)))


def scraped(*rows: tuple[float, float]) -> Recordings:
    """An exchange between two scrapes of (count, sum)."""
    texts = [
        f"process_start_time_seconds 1.0\nvllm:x_seconds_count {count}\nvllm:x_seconds_sum {total}\n"
        for count, total in rows
    ]
    one = Recording("a", Request("POST", CHAT), 200, metrics_before=texts[0], metrics_after=texts[1])
    return cast("Recordings", Played({"a": one}))


def test_a_sum_falls_only_where_one_more_was_counted() -> None:
    counters_grow(vllm_recordings=scraped((1, 5.0), (2, 6.0)))
    counters_grow(vllm_recordings=scraped((1, 5.0), (2, -3.0)))  # vLLM 0.32: one that failed waited for less
    for after in ((1, 4.0), (0, 5.0)):
        with pytest.raises(AssertionError, match="x_seconds"):
            counters_grow(vllm_recordings=scraped((1, 5.0), after))


def test_marks_of_reasoning_are_found_in_texts_and_in_calls_but_not_where_they_were_given() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"a</think>": 1}'}}
    reads = server(**{"reasoning-parser": "qwen3"})
    marks_kept_out(vllm_recordings=chat({}, {"content": "12", "reasoning": "7 and 5"}), vllm_server=reads)
    asked = {"messages": [{"role": "user", "content": "What is </think>?"}]}
    marks_kept_out(vllm_recordings=chat(asked, {"content": "</think> is a tag."}), vllm_server=reads)
    for message in ({"content": "So.</think>12"}, {"content": None, "tool_calls": [call]}):
        with pytest.raises(AssertionError, match="</think>"):
            marks_kept_out(vllm_recordings=chat({}, message), vllm_server=reads)


def test_what_a_parser_leaves_in_the_text_or_a_request_asks_for_is_no_mark_too_many() -> None:
    left = chat({"skip_special_tokens": False}, {"content": "</think>12"})
    with pytest.raises(NotRun):
        marks_kept_out(vllm_recordings=left, vllm_server=server(**{"reasoning-parser": "qwen3"}))
    appended = server(**{"reasoning-parser": "minimax_m2_append_think"})
    with pytest.raises(NotRun):
        marks_kept_out(vllm_recordings=chat({}, {"content": "</think>12"}), vllm_server=appended)
