"""What answers say: texts, near-ties, statuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_vllm.declare.answers import near_tie, not_json, parting, text_of, unexpected
from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import Recording, Request, Undecided


def entry(*candidates: tuple[str, float]) -> dict[str, Any]:
    top = [{"token": token, "logprob": logprob} for token, logprob in candidates]
    return {**top[0], "top_logprobs": top}


PARIS = [entry(("The", -0.2), ("Par", -0.3)), entry((" capital", -0.1), (" city", -4.0))]


def recording(
    status: int | None, body: bytes = b"{}", expect: int | None = 200, error: str = ""
) -> Recording:
    request = Request("POST", "/v1/completions", json={}, expect=expect)
    return Recording("chat.plain", request, status=status, chunks=((0.1, body),), error=error)


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        ({"text": "a"}, "a"),
        ({"text": None}, ""),
        ({"message": {"content": "a"}}, "a"),
        ({"message": {"content": None, "reasoning": "b"}}, "b"),
        ({"message": {"content": "a", "reasoning_content": "b"}}, "ba"),
        ({"message": {"content": "a", "reasoning": "b", "reasoning_content": "b"}}, "ba"),
    ],
)
def test_text_is_all_that_a_choice_says(choice: dict[str, Any], text: str) -> None:
    assert text_of(choice) == text


@pytest.mark.parametrize(
    ("one", "other", "index"), [("abc", "abd", 2), ("ab", "abc", 2), ("", "", 0), ("x", "y", 0)]
)
def test_parting_is_the_first_difference(one: str, other: str, index: int) -> None:
    assert parting(one, other) == index


@pytest.mark.parametrize(
    ("one", "other", "tied"),
    [
        ("The capital", "Paris", True),
        ("The capital", "Rome", False),
        ("The capital", "The city", False),
        ("The capital is", "The capital of", False),
    ],
)
def test_a_near_tie_needs_both_candidates(one: str, other: str, tied: bool) -> None:
    assert near_tie(PARIS, one, other) is tied


def test_what_was_not_expected_is_named() -> None:
    unsent = Recording("chat.repeat", Request("", ""), error="not sent: chat.plain got no response")
    rows = [
        recording(200),
        recording(500),
        recording(None, error="reset"),
        recording(500, expect=None),
        unsent,
    ]

    assert unexpected(rows) == ["chat.plain: 500, not 200", "chat.plain: reset, not 200"]


def test_what_a_stopped_server_never_got_accuses_nobody() -> None:
    unsent = replace(
        recording(None, error="not sent: 3 exchanges in a row found no server"), failure=Failure.NOT_SENT
    )

    assert unexpected([recording(500), unsent]) == ["chat.plain: 500, not 200"]
    with pytest.raises(Undecided, match="not sent"):
        unexpected([recording(200), unsent])


@pytest.mark.parametrize("body", [b'{"a": NaN}', b"-Infinity", b"text", b"", b'"\xff"'])
def test_what_is_no_json_is_named(body: bytes) -> None:
    assert len(not_json([recording(200, body), recording(200), recording(None)])) == 1
