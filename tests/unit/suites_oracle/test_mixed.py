"""Whose answer it is that a request got: another prompt's, or its own that tipped over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_vllm.wire.recording import Recording, Request
from suites.oracle.test_same import test_mixed_up as mixed_up
from tests.unit.judging import Played, server

if TYPE_CHECKING:
    from pytest_vllm.declare.recordings import Recordings

MINE, ITS = "The capital of France is Paris.", "The ducks swim over the lake at noon."
ASKED, OTHER = "What is the capital of France?", "What do the ducks do?"
#: As likely as `MINE`, and not the answer to anything else.
TIED = {"The": -0.7, "Paris": -0.8}


def answer(key: str, prompt: str, text: str, *, tied: bool = False, **more: Any) -> Recording:
    body = {"model": "m", "temperature": 0, "messages": [{"role": "user", "content": prompt}], **more}
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    if tied:
        tops = [{"token": one, "logprob": value} for one, value in TIED.items()]
        rest = {"token": text[3:], "top_logprobs": [{"token": text[3:], "logprob": -0.1}]}
        choice["logprobs"] = {"content": [{"token": "The", "top_logprobs": tops}, rest]}
    said = {"id": key, "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    said["usage"] = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    request = Request("POST", "/v1/chat/completions", json=body, expect=200)
    return Recording(key, request, status=200, chunks=((0.1, json.dumps(said).encode()),))


def judge(*recorded: Recording) -> None:
    kept = {one.key: one for one in recorded}
    mixed_up(vllm_recordings=cast("Recordings", Played(kept)), vllm_server=server())


ALIKE = (answer("a.one", ASKED, MINE), answer("a.two", ASKED, MINE))
LISTED = answer("a.listed", ASKED, MINE, tied=True, logprobs=True, top_logprobs=2)


def test_another_prompt_s_answer_is_a_mix_up() -> None:
    with pytest.raises(AssertionError, match=r"a\.late got the answer of b\.other"):
        judge(*ALIKE, LISTED, answer("a.late", ASKED, ITS), answer("b.other", OTHER, ITS))


def test_the_same_prompt_with_a_salt_is_nobody_else() -> None:
    """On a real server the first answer of a cold cache was that of the salted request: of the same words."""
    judge(*ALIKE, LISTED, answer("a.late", ASKED, ITS), answer("b.salted", ASKED, ITS, cache_salt="x"))


def test_a_near_tie_is_no_mix_up() -> None:
    tipped = "Paris is the capital of France, and large."

    judge(*ALIKE, LISTED, answer("a.late", ASKED, tipped), answer("b.other", OTHER, tipped))
