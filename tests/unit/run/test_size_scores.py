"""Fewer log probabilities than a request asks for are the operator's choice, and no fault."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_vllm.run.size import Sizes
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from pytest_vllm.wire.client import WireClient

SAID = "Requested sample logprobs of 5, which is greater than max allowed: 1"


@pytest.mark.parametrize(
    ("args", "launcher", "status", "asked", "excused"),
    [
        ({"max-logprobs": 1}, "sim", 400, {"logprobs": True, "top_logprobs": 5}, True),
        ({"max-logprobs": 1}, "sim", 200, {"logprobs": True, "top_logprobs": 5, "stream": True}, True),
        ({}, "attach", 400, {"logprobs": 5}, True),
        ({"max-logprobs": 0}, "sim", 400, {"prompt_logprobs": 5}, True),
        ({}, "sim", 400, {"logprobs": 5}, False),
        ({"max-logprobs": 8}, "attach", 400, {"logprobs": 5}, False),
        ({"max-logprobs": -1}, "sim", 400, {"logprobs": 5}, False),
        ({"max-logprobs": 1}, "sim", 500, {"logprobs": 5}, False),
        ({"max-logprobs": 1}, "sim", 400, {}, False),
    ],
)
def test_a_refusal_of_more_than_the_operator_allows_is_excused(
    args: dict[str, Any], launcher: str, status: int, asked: dict[str, Any], excused: bool
) -> None:
    """By its status, or as the event of a stream that began with 200."""
    sizes = Sizes(Server("http://x", "m", args=args, launcher=launcher), cast("WireClient", None))
    request = Request("POST", "/v1/completions", json={"prompt": "a", **asked})
    answer = Recording("x", request, sent=0.0, status=status, chunks=((0.1, SAID.encode()),))

    assert bool(asyncio.run(sizes.refused(answer))) is excused


def test_a_request_that_is_meant_to_be_refused_is_judged() -> None:
    sizes = Sizes(Server("http://x", "m", launcher="attach"), cast("WireClient", None))
    request = Request("POST", "/v1/completions", json={"prompt": "a", "logprobs": 5}, expect=400)
    answer = Recording("x", request, sent=0.0, status=400, chunks=((0.1, SAID.encode()),))

    assert not asyncio.run(sizes.refused(answer))


@pytest.mark.parametrize(("asked", "excused"), [(5, True), (10_000_000, False)])
def test_what_may_be_refused_is_no_evidence_where_fewer_are_given(asked: int, excused: bool) -> None:
    """What no server gives unless it is told to is asked for its refusal."""
    sizes = Sizes(Server("http://x", "m", args={"max-logprobs": 1}), cast("WireClient", None))
    request = Request("POST", "/v1/completions", json={"prompt": "a", "logprobs": asked}, expect=None)
    said = SAID.replace("logprobs of 5", f"logprobs of {asked}").encode()
    answer = Recording("x", request, sent=0.0, status=400, chunks=((0.1, said),))

    assert bool(asyncio.run(sizes.refused(answer))) is excused
