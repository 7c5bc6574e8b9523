"""Where answers may end and what they may list: what is wrong is named, what a healthy server does is not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_vllm.wire.recording import Recording, Request
from suites.oracle.test_ends import test_allowed as ends_allowed
from suites.oracle.test_listed import test_candidates as candidates_given
from suites.oracle.test_listed import test_joined as tokens_joined
from tests.unit.judging import Played, server

if TYPE_CHECKING:
    from pytest_vllm.declare.recordings import Recordings

STOPPED: dict[str, Any] = {"finish_reason": "stop", "stop_reason": None}
CUT: dict[str, Any] = {"finish_reason": "length", "stop_reason": None}


def answered(path: str, asked: dict[str, Any], choice: dict[str, Any], tokens: int = 3) -> Recordings:
    said = {"id": "one", "created": 1, "model": "m", "choices": [{"index": 0, **choice}]}
    said["usage"] = {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": 5 + tokens}
    request = Request("POST", path, json={"model": "m", **asked}, expect=200)
    one = Recording("a.one", request, status=200, chunks=((0.1, json.dumps(said).encode()),))
    return cast("Recordings", Played({one.key: one}))


def completed(asked: dict[str, Any], text: str, tokens: int = 3, **choice: Any) -> Recordings:
    return answered("/v1/completions", {"prompt": "Hi", **asked}, {"text": text, **choice}, tokens)


def listed(tokens: list[str], text: str, **more: Any) -> Recordings:
    rows = {"tokens": tokens, "token_logprobs": [-1.0] * len(tokens), "top_logprobs": [{}] * len(tokens)}
    return completed({"logprobs": 1}, text, logprobs=rows, **{**CUT, **more})


@pytest.mark.parametrize(
    ("asked", "choice"),
    [
        ({"ignore_eos": True}, STOPPED),
        ({"min_tokens": 3}, STOPPED),
        ({"stop": ["a"]}, {"finish_reason": "stop", "stop_reason": "of another"}),
        ({"stop": ["a"], "min_tokens": 5}, {"finish_reason": "stop", "stop_reason": "a"}),
    ],
    ids=["ignore-eos", "too-early", "foreign-stop", "stopped-too-early"],
)
def test_an_end_that_was_not_allowed_is_named(asked: dict[str, Any], choice: dict[str, Any]) -> None:
    with pytest.raises(AssertionError, match=r"a\.one"):
        ends_allowed(vllm_recordings=completed(asked, "Hi.", **choice), vllm_server=server())


@pytest.mark.parametrize(
    ("asked", "choice", "tokens"),
    [
        ({"ignore_eos": True}, {"finish_reason": "stop", "stop_reason": 200012}, 3),
        ({"ignore_eos": True, "structured_outputs": {"choice": ["a"]}}, STOPPED, 3),
        ({"min_tokens": 3}, STOPPED, 4),
        ({"stop": "a"}, {"finish_reason": "stop", "stop_reason": "a"}, 3),
        ({}, STOPPED, 1),
    ],
    ids=["the-server's-own-token", "constraint", "just-long-enough", "its-own-stop", "free"],
)
def test_an_end_that_is_allowed_is_not(asked: dict[str, Any], choice: dict[str, Any], tokens: int) -> None:
    ends_allowed(vllm_recordings=completed(asked, "Hi.", tokens, **choice), vllm_server=server())


def test_drafts_may_end_an_answer_early() -> None:
    drafting = replace(server(), drafts=True)

    ends_allowed(vllm_recordings=completed({"min_tokens": 9}, "Hi.", **STOPPED), vllm_server=drafting)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [(["a", "\n", "\nb"], "a\nb"), (["the", " cat"], "the dog"), (["a"], "a b")],
    ids=["line-ends-pile-up", "another-text", "a-token-less"],
)
def test_tokens_that_do_not_join_are_named(tokens: list[str], text: str) -> None:
    with pytest.raises(AssertionError, match=r"a\.one"):
        tokens_joined(vllm_recordings=listed(tokens, text))


@pytest.mark.parametrize(
    ("tokens", "text", "more"),
    [
        (["<s>", "a", "\n", "b"], "a\nb", {}),
        (["the", "cat"], "the cat", {}),
        (["\ufffd", "\ufffd"], "東", {}),
        (["a", " STOP"], "a", STOPPED),
        (["token_id:7"], "a", {}),
    ],
    ids=["begin", "blanks-lost", "parts-of-a-character", "stopped", "by-id"],
)
def test_tokens_of_healthy_servers_are_not(tokens: list[str], text: str, more: dict[str, Any]) -> None:
    if tokens[0].startswith("token_id:"):
        with pytest.raises(Exception, match="no answer lists its tokens"):
            tokens_joined(vllm_recordings=listed(tokens, text, **more))
    else:
        tokens_joined(vllm_recordings=listed(tokens, text, **more))


def test_an_echoed_chat_lists_the_tokens_of_what_came_after() -> None:
    asked = {"messages": [{"role": "assistant", "content": "Well, "}], "echo": True, "logprobs": True}
    rows = {"content": [{"token": "yes", "logprob": -1.0, "top_logprobs": []}]}
    message = {"role": "assistant", "content": "Well, yes"}
    choice = {"message": message, "logprobs": rows, **CUT}

    tokens_joined(vllm_recordings=answered("/v1/chat/completions", asked, choice))
    message["content"] = "Well, assistant\n\nyes"
    with pytest.raises(AssertionError, match="assistant"):
        tokens_joined(vllm_recordings=answered("/v1/chat/completions", asked, choice))


@pytest.mark.parametrize(("given", "right"), [(2, True), (3, True), (1, False)])
def test_candidates_are_as_many_as_were_asked_for(given: int, right: bool) -> None:
    tops = [{"token": str(at), "logprob": -1.0} for at in range(given)]
    row = {"token": "0", "logprob": -1.0, "top_logprobs": tops}
    asked = {"messages": [{"role": "user", "content": "Hi"}], "logprobs": True, "top_logprobs": 2}
    choice = {"message": {"role": "assistant", "content": "0"}, "logprobs": {"content": [row]}, **CUT}
    said = answered("/v1/chat/completions", asked, choice)
    if right:
        candidates_given(vllm_recordings=said)
    else:
        with pytest.raises(AssertionError, match="1 candidates of 2"):
            candidates_given(vllm_recordings=said)
