"""Whether what a server calls log probabilities are logits: as it was told, or as they came."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_vllm.run.capabilities import PROBES
from pytest_vllm.run.findings import Findings
from pytest_vllm.run.lag import Lag
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from pytest_vllm.wire.client import WireClient


class Scoring:
    """A client that gets one answer with this log probability."""

    def __init__(self, value: float | None, *, chat: bool) -> None:
        entry = {"content": [{"token": "a", "logprob": value}]} if chat else {"token_logprobs": [value]}
        self.body = json.dumps({"choices": [{"logprobs": entry}]}).encode()

    async def send(self, key: str, request: Request) -> Recording:
        return Recording(key, request, status=200, chunks=((0.0, self.body),))


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize(
    ("value", "args", "logits"),
    [
        (-0.3, None, False),
        (0.0, None, False),
        (None, None, False),
        (21.5, None, True),
        (21.5, {}, False),
        (-0.3, {"logprobs-mode": "raw_logits"}, True),
        (21.5, {"logprobs-mode": "processed_logprobs"}, False),
    ],
)
def test_logits(value: float | None, args: dict[str, Any] | None, logits: bool, chat: bool) -> None:
    """A server that was started to give log probabilities and gives more than that is wrong."""
    client = cast("WireClient", Scoring(value, chat=chat))

    async def asked() -> bool:
        async with Lag() as lag:
            findings = Findings(client, Server("http://127.0.0.1:1", "m"), args, PROBES, lag)
            await findings.chat(logprobs=True)
            return findings.logits

    assert asyncio.run(asked()) is logits


@pytest.mark.parametrize(
    ("value", "scores", "logits"),
    [
        (-1.0, True, True),
        (0.0, True, True),
        (1e-7, True, True),
        (0.5, False, True),
        (float("nan"), False, False),
        (float("inf"), False, False),
        (None, False, False),
        ("-1", False, False),
        (True, False, False),
    ],
)
def test_what_a_log_probability_is(value: object, scores: bool, logits: bool) -> None:
    assert Server("http://127.0.0.1:1", "m").is_logprob(value) is scores
    assert Server("http://127.0.0.1:1", "m", logits=True).is_logprob(value) is logits
