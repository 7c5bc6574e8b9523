"""What a proxy costs, judged by the same requests past it and through it."""

from __future__ import annotations

import asyncio

import pytest

from pytest_vllm.measure.measured import Measured
from pytest_vllm.measure.samples import Sample
from pytest_vllm.measure.workload import Workload
from pytest_vllm.sim.defects.hooks import Hooks
from pytest_vllm.sim.defects.registry import hooks_of
from pytest_vllm.sim.http.relay import Relay
from pytest_vllm.wire.recording import Undecided
from suites.throughput.test_proxy import test_first_token as check_first_token
from suites.throughput.test_proxy import test_streams as check_streams


def measured(ttft: float, end: float, count: int = 8) -> Measured:
    """So many answers with the first token and the end after so many seconds."""
    ones = tuple(Sample("relayed", at, at, at, [at + ttft], at + end) for at in map(float, range(count)))
    return Measured("throughput.x", Workload(), samples=ones, alone=("It is Paris.", "It is Paris."))


def test_a_proxy_that_passes_on_holds() -> None:
    direct, proxied = measured(0.05, 1.0), measured(0.06, 1.02)

    check_first_token(direct, proxied)
    check_streams(direct, proxied)


def test_a_proxy_that_buffers() -> None:
    with pytest.raises(AssertionError, match="proxy_buffering off"):
        check_streams(measured(0.05, 1.0), measured(1.0, 1.001))


def test_a_proxy_that_queues() -> None:
    with pytest.raises(AssertionError, match=r"through the proxy 0.9 s, straight to a server"):
        check_first_token(measured(0.05, 1.0), measured(0.9, 1.9))


def test_answers_that_are_over_at_once_decide_nothing() -> None:
    with pytest.raises(Undecided, match="too short"):
        check_streams(measured(0.05, 0.06), measured(0.06, 0.06))


def through(hooks: Hooks, *pieces: bytes) -> list[bytes]:
    """What a client reads, piece by piece, when the server sends these with a pause between them."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.02)
        writer.close()

    async def asked() -> list[bytes]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        relay = Relay(server.sockets[0].getsockname()[1], hooks)
        await relay.up("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
        writer.write(b"GET\n")
        read = []
        while data := await reader.read(1 << 16):
            read.append(data)
        writer.close()
        relay.down()
        server.close()
        if others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others, timeout=5)  # each closes its connection when it ends
        return read

    return asyncio.run(asked())


PIECES = (b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", b"data: 1\n\n", b"0\r\n\r\n")


def test_the_simulated_proxy_passes_pieces_on_as_they_come() -> None:
    assert through(Hooks(), *PIECES) == list(PIECES)


def test_the_simulated_proxy_that_buffers_gives_all_at_the_end() -> None:
    assert through(hooks_of(["proxy.buffers-streams"]), *PIECES) == [b"".join(PIECES)]
