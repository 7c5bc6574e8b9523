"""A server that takes requests and answers none: named after the trials, not after an hour of time limits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_vllm.run.findings import AGAIN_SECONDS, ATTACHED_SECONDS, TRIAL_SECONDS, Findings
from pytest_vllm.run.lag import Lag
from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from pytest_vllm.wire.client import WireClient

CHAT = "/v1/chat/completions"


def findings(launcher: str, *answers: Recording) -> Findings:
    server = Server("http://127.0.0.1:1", "m", launcher=launcher)
    found = Findings(cast("WireClient", None), server, None, {}, Lag())
    found.answers.extend(answers)
    return found


def trial(*, stream: bool = False, path: str = CHAT, **response: Any) -> Recording:
    return Recording("probe", Request("POST", path, json={"stream": stream}), **response)


LATE: dict[str, Any] = {"failure": Failure.TIMEOUT_FIRST_BYTE}
GOOD: dict[str, Any] = {"status": 200, "chunks": ((0.1, b"{}"),)}
PACKED: dict[str, Any] = {**GOOD, "headers": (("content-encoding", "gzip"),)}


@pytest.mark.parametrize(
    ("answers", "hung"),
    [
        ([trial(**LATE), trial(**LATE)], 2),
        ([trial(**LATE), trial(**GOOD)], 0),
        ([trial(**LATE), trial(**PACKED)], 1),
        ([trial(**LATE), trial(status=200)], 1),
        ([trial(**LATE), trial(path="/tokenize", **GOOD)], 1),
        ([trial(**LATE), trial(status=404)], 1),
        ([trial(**GOOD), trial(stream=True, status=200, failure=Failure.TIMEOUT_TOTAL)], 1),
        ([trial(**GOOD), trial(stream=True, **GOOD), trial(stream=True, **LATE)], 0),
        ([trial(status=500), trial(failure=Failure.RESET)], 0),
        ([], 0),
    ],
)
def test_what_hangs(answers: list[Recording], hung: int) -> None:
    """One answer of a kind shows that this kind works; a refusal or an answer without an engine does not."""
    assert len(findings("attach", *answers).hung) == hung


def test_what_nobody_can_read_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    found = findings("attach", trial(**PACKED))
    monkeypatch.setattr(found, "patience", 0.0)
    sent: list[float | None] = []

    async def send(key: str, request: Request) -> Recording:
        sent.append(request.timeout)
        return Recording(key, request, **LATE)

    monkeypatch.setattr(found, "send", send)
    answers = [asyncio.run(found.chat()) for _ in range(3)]

    assert sent == [AGAIN_SECONDS]
    assert [one.failure for one in answers[1:]] == [Failure.NOT_SENT] * 2


def test_a_server_that_is_found_running_has_less_time() -> None:
    """One that this run has started may compile at its first request."""
    assert findings("attach").patience == ATTACHED_SECONDS
    assert findings("docker").patience == TRIAL_SECONDS
