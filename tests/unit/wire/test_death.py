"""A server that dies or hangs while it is recorded: noticed soon, asked about first, said once."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.run.recorder import record_all
from pytest_vllm.wire.client import WireClient
from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.server import Server
from tests.unit.wire.fake import Call, fake_server
from tests.unit.wire.test_record import QUICK, Run, planned, says_its_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_vllm.run.pace import RecordingReport
    from pytest_vllm.run.plan import Planned


@pytest.fixture
def record(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_a_dead_server_is_not_waited_for(record: Run) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    plan = [planned(f"e{number:02}") for number in range(30)] + [planned("m", metrics=True)]
    report = asyncio.run(record.against(url, plan, concurrency=2))

    why = report.stopped
    kinds = record.failures
    assert why.startswith("3 exchanges in a row found no server at ")
    assert "GET /health: no answer (no connection to" in why
    assert 3 <= kinds[Failure.GIVEN_UP] <= 4
    assert kinds[Failure.GIVEN_UP] + kinds[Failure.STOPPED] == 31
    assert set(record.errors.values()) == {f"given up: {why}", f"not sent: {why}"}


def test_a_server_that_dies_takes_the_open_exchanges_with_it(record: Run) -> None:
    """One exchange hangs on a half-dead server while new connections are refused."""

    async def run() -> RecordingReport:
        hanging = asyncio.Event()

        async def handler(call: Call) -> None:
            hanging.set()
            await call.closed_by_client()

        async with fake_server(handler) as hung:

            def elsewhere(one: Planned, done: Mapping[str, Recording]) -> Request:
                return Request("GET", "/hang" if one.key == "hang" else "/x")

            class Half(WireClient):
                async def send(self, key: str, request: Request) -> Recording:
                    if request.path == "/hang":
                        return await super().send(key, request)
                    await hanging.wait()
                    return Recording(key, request, error="connection refused", failure=Failure.NO_CONNECTION)

            server = Server(hung.url, "m")
            async with Half(server) as client:
                return await record_all(
                    server,
                    [planned("hang"), *(planned(f"e{number}") for number in range(9))],
                    client,
                    concurrency=2,
                    store=record.store,
                    on_done=record.on_done,
                    build=elsewhere,
                    died=lambda: "the server ended with status 137",
                    patience=QUICK,
                )

    asyncio.run(run())

    assert record.errors["hang"] == "given up: the server ended with status 137"
    assert len(record.errors) == 10


@pytest.mark.parametrize("refuses", [False, True])
def test_a_hanging_server_is_not_waited_for_thirty_times(record: Run, refuses: bool) -> None:
    """A hung engine may leave the server's other answers, its health and its metrics, as they are."""

    async def handler(call: Call) -> None:
        if call.path == "/metrics":
            await call.answer(b"vllm:generation_tokens_total 7.0\n")
        elif call.path == "/health" or (refuses and call.path.endswith(("0", "2", "4", "6", "8"))):
            await call.answer(b"{}", status=200 if call.path == "/health" else 400)
        else:
            await call.closed_by_client()

    report = record([planned(f"e{number}") for number in range(30)], handler, concurrency=2, exchange=0.02)
    kinds = record.failures

    assert report.stopped.startswith("the server hangs: GET /health: 200, no token for ")
    assert kinds[Failure.STOPPED] >= 10
    assert set(kinds) == {Failure.STOPPED, Failure.GIVEN_UP} | ({None} if refuses else set())


@pytest.mark.parametrize("alone", [True, False])
def test_a_frozen_server_is_noticed_before_any_limit(record: Run, alone: bool) -> None:
    """Nothing at all answers; every exchange would be waited for for minutes."""

    async def handler(call: Call) -> None:
        if call.path == "/e0":
            await says_its_name(call)
        else:
            await call.closed_by_client()

    plan = [planned(f"e{number}", alone=alone) for number in range(5)]
    record.patience = replace(QUICK, quiet=0.2)
    report = record(plan, handler, concurrency=2, exchange=300.0)

    assert report.stopped.startswith("the server hangs: GET /health: no answer")
    assert record.store.get("e0").status == 200
    assert record.failures == {
        None: 1,
        Failure.GIVEN_UP: 1 if alone else 2,
        Failure.STOPPED: 3 if alone else 2,
    }


@pytest.mark.parametrize("end", [Failure.RESET, Failure.TRUNCATED, 502, 503, 504])
def test_a_server_behind_something_dies(record: Run, end: Failure | int) -> None:
    """Docker's proxy resets or closes, nginx answers 502: nobody is refused a connection."""

    async def handler(call: Call) -> None:
        if call.path in ("/e0", "/e1"):
            await says_its_name(call)
        elif isinstance(end, int):
            await call.answer({"error": "bad gateway"}, end)
        elif end is Failure.RESET:
            call.writer.transport.abort()
        else:
            call.writer.close()

    plan = [planned(f"e{number}") for number in range(30)]
    report = record(
        plan, handler, concurrency=1, build=lambda one, _: Request("POST", f"/{one.key}", json={})
    )
    kinds = record.failures

    assert report.stopped.startswith("3 exchanges in a row found no server")
    assert kinds == {None: 2, Failure.GIVEN_UP: 3, Failure.STOPPED: 25}


def test_the_launcher_is_asked_first(record: Run) -> None:
    """Its word comes with the cause, and at once: nothing is waited for."""

    async def handler(call: Call) -> None:
        call.writer.close()

    record.died = lambda: "the server ended with status 137: it was killed"
    report = record([planned(f"e{number}") for number in range(9)], handler, concurrency=1)

    assert report.stopped == "the server ended with status 137: it was killed"
    assert "/health" not in [call.path for call in record.calls]


@pytest.mark.parametrize("answer", [200, 401, 404, 500])
def test_a_server_that_answers_is_neither_dead_nor_hung(record: Run, answer: int) -> None:
    """Some exchanges are closed each time: that is a fault of theirs, and the rest is recorded."""

    async def handler(call: Call) -> None:
        if call.path == "/health":
            await call.answer({}, answer)
        elif call.path.endswith("9"):
            await says_its_name(call)
        else:
            call.writer.close()

    plan = [planned(f"e{number:02}") for number in range(30)]
    report = record(plan, handler, concurrency=1)
    kinds = record.failures

    assert report.stopped == ""
    assert kinds == {None: 3, Failure.TRUNCATED: 27}


@pytest.mark.parametrize("sign", ["token", "counter"])
def test_a_slow_server_does_not_hang(record: Run, sign: str) -> None:
    """Every exchange takes too long; one token comes, or the server counts others that it generates."""
    counted = iter(range(10_000))

    async def handler(call: Call) -> None:
        if call.path == "/metrics":
            await call.answer(f"vllm:generation_tokens_total {next(counted)}\n".encode())
        elif call.path == "/health":
            await call.closed_by_client()
        elif sign == "token" and call.path == "/v1/models":
            await call.answer({})
        else:
            await call.closed_by_client()

    report = record([planned(f"e{number}") for number in range(9)], handler, concurrency=2, exchange=0.02)

    assert report.stopped == ""
    assert set(record.failures) == {Failure.TIMEOUT_FIRST_BYTE}


def test_a_run_that_is_told_to_end_keeps_what_it_has(record: Run) -> None:
    """A CI job's time limit: what is in flight is given up, the rest not sent, all of it on disk."""
    told: list[str] = []

    async def handler(call: Call) -> None:
        if call.path in ("/e0", "/e1"):
            await says_its_name(call)
        else:
            told.append("the run was told to end by SIGTERM")
            await call.closed_by_client()

    record.told = lambda: told[0] if told else ""
    report = record([planned(f"e{number}") for number in range(9)], handler, concurrency=1)

    assert report.stopped == "the run was told to end by SIGTERM"
    assert record.failures == {None: 2, Failure.GIVEN_UP: 1, Failure.STOPPED: 6}
    assert record.store.get("e8").error == "not sent: the run was told to end by SIGTERM"
