"""Answers that begin and never end are not waited for by the hundred; others are still asked for."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import Recording, Request
from tests.unit.wire.test_record import Run, planned

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_vllm.run.plan import Planned
    from tests.unit.wire.fake import Call

CHAT, PLAIN = "/v1/chat/completions", "/v1/completions"
TOKEN = b'data: {"choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n'


def asked(one: Planned, _done: Mapping[str, Recording]) -> Request:
    path = CHAT if one.key.startswith("chat") else PLAIN
    return Request("POST", path, json={"stream": True, "max_tokens": 4})


def recorded(folder: Path, *, ends_once: bool) -> Run:
    """Ten streams of chat, which never end, or of which only the first one ended; and ten others."""
    run, ended = Run(folder), [not ends_once]

    async def handler(call: Call) -> None:
        if call.path == PLAIN or (call.path == CHAT and not ended[0]):
            ended[0] = True
            await call.stream(TOKEN, b"data: [DONE]\n\n")
        elif call.path == CHAT:
            await call.stream(TOKEN, end=False)
            await call.closed_by_client()
        else:
            await call.answer({}, 404)

    plan = [planned(f"{name}-{number}") for number in range(10) for name in ("chat", "plain")]
    run(plan, handler, concurrency=2, exchange=0.1, build=asked)
    return run


def test_no_more_of_them_are_asked_for(tmp_path: Path) -> None:
    run = recorded(tmp_path, ends_once=False)
    chats = Counter(run.store.get(f"chat-{number}").failure for number in range(10))

    assert 3 <= chats[Failure.TIMEOUT_TOTAL] <= 4
    assert chats[Failure.STOPPED] + chats[Failure.GIVEN_UP] == 10 - chats[Failure.TIMEOUT_TOTAL]
    assert {run.store.get(f"plain-{number}").failure for number in range(10)} == {None}
    words = {error for error in run.errors.values() if error.startswith("not sent")}
    assert words <= {
        f"not sent: {count} streams of {CHAT} began and did not end as they should, and none did"
        for count in (3, 4)
    }
    assert run.report is not None
    assert not run.report.stopped


def test_the_shortest_are_tasted_first_and_the_rest_is_given_up(tmp_path: Path) -> None:
    """A stream that goes past what was asked for shows itself soon where little was asked for."""
    run = Run(tmp_path)

    async def handler(call: Call) -> None:
        await call.stream(*[TOKEN] * 30, end=False)
        await call.closed_by_client()

    def lengths(one: Planned, _done: Mapping[str, Recording]) -> Request:
        tokens = 2 if one.key.startswith("short") else 4000
        return Request("POST", CHAT, json={"stream": True, "max_tokens": tokens})

    plan = [planned(f"{name}-{number}") for number in range(3) for name in ("a-long", "short")]
    run(plan, handler, concurrency=4, exchange=60, build=lengths)

    assert {run.store.get(f"short-{number}").failure for number in range(3)} == {Failure.PROTOCOL}
    assert {run.store.get(f"a-long-{number}").failure for number in range(3)} == {
        Failure.GIVEN_UP,
        Failure.STOPPED,
    }


def test_where_one_has_ended_the_others_may_be_long(tmp_path: Path) -> None:
    run = recorded(tmp_path, ends_once=True)

    assert Failure.STOPPED not in run.failures


def test_the_time_limit_of_an_exchange_itself_says_nothing(tmp_path: Path) -> None:
    """It is there to leave a stream in its middle."""
    run = Run(tmp_path)

    async def handler(call: Call) -> None:
        await call.stream(TOKEN, end=False)
        await call.closed_by_client()

    def short(one: Planned, _done: Mapping[str, Recording]) -> Request:
        del one
        return Request("POST", CHAT, json={"stream": True}, timeout=0.05)

    run([planned(f"e{number}") for number in range(8)], handler, concurrency=2, build=short)

    assert run.failures[Failure.STOPPED] == 0
