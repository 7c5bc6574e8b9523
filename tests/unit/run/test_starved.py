"""A server that gives nothing for a while on a machine that starves it: given more time before it hangs."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from pytest_vllm.run.pressure import Pressure
from pytest_vllm.run.vigil import Patience, Vigil
from pytest_vllm.wire.client import WireClient
from pytest_vllm.wire.server import Server
from tests.unit.wire.fake import Call, fake_server

PATIENCE = 30.0
QUICK = Patience(gone=0.2, hung=0.3, starved=6.0, health=0.2, pause=0.02)


def crowded() -> Pressure:
    """A machine on which nine tasks want each processor, and some always wait."""
    now = time.monotonic()
    return Pressure(now, waited=now, load=9.0)


def idle() -> Pressure:
    """A machine that has nothing to do."""
    return Pressure(time.monotonic())


def found(machine: object, after: float, patience: Patience = QUICK, held: float = 0.0) -> str:
    """What is found of a server whose next token takes so long, by a process that is held up once."""
    left = [held]

    async def run() -> str:
        begun = 0.0

        async def handler(call: Call) -> None:
            nonlocal begun
            if call.path == "/metrics":
                # from the first look on: a busy client may take its time
                begun = begun or time.perf_counter()
                tokens = 9 if time.perf_counter() - begun > after else 7
                await call.answer(b"vllm:generation_tokens_total %d.0\n" % tokens)
            elif call.path == "/health":
                time.sleep(left.pop() if left else 0.0)  # noqa: ASYNC251 - holds up server and client alike
                await call.answer({})
            else:
                await call.closed_by_client()

        async with fake_server(handler) as fake:
            server = Server(fake.url, "m")
            async with WireClient(server) as client:
                return await Vigil(server, client, patience=patience, read=machine).gone()  # type: ignore[arg-type]

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("machine", "after", "hangs"),
    [(crowded, 0.7, False), (idle, 0.7, True), (crowded, 99.0, True)],
)
def test_a_machine_that_starves_its_server_is_waited_for(
    machine: object, after: float, *, hangs: bool
) -> None:
    """As long as patience has for it, not for ever."""
    assert found(machine, after).startswith("the server hangs") is hangs


def test_a_server_that_hangs_on_such_a_machine_says_under_what_it_was() -> None:
    assert "this machine: load 9 per processor" in found(crowded, 99.0)
    assert "this machine" not in found(idle, 99.0)


def test_time_in_which_this_process_was_held_up_is_no_patience() -> None:
    """The machine stood still for longer than an answer is waited for; answer and token come soon after."""
    patience = replace(QUICK, gone=1.0, hung=1.0)

    assert found(idle, 0.5, patience, held=1.2) == ""
    assert found(idle, 99.0, patience, held=1.2).startswith("the server hangs")


@pytest.mark.parametrize("cancel", [False, True])
def test_what_it_asked_a_slow_server_is_waited_for(cancel: bool) -> None:
    """Tokens come, so it computes; the one that it asked for comes later, and is counted then."""
    ended: list[str] = []

    async def run() -> tuple[str, list[bool]]:
        tokens = 0

        async def handler(call: Call) -> None:
            nonlocal tokens
            if call.path == "/metrics":
                tokens += 1
                await call.answer(b"vllm:generation_tokens_total %d.0\n" % tokens)
            elif call.path == "/health":
                await call.answer({})
            else:
                await asyncio.sleep(0.3)
                await call.answer({"data": []})
                ended.append(call.path)

        async with fake_server(handler) as fake:
            server = Server(fake.url, "m")
            async with WireClient(server) as client:
                vigil = Vigil(server, client, patience=replace(QUICK, hung=PATIENCE), read=idle)
                why = await vigil.gone()
                return why, [await vigil.over(cancel=cancel), await vigil.over()]

    assert asyncio.run(run()) == ("", [True, False])
    assert cancel or ended == ["/v1/models"]
