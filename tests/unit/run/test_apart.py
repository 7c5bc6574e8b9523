"""What a version of vLLM lets leak into its neighbours is sent by itself, and only there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.run.apart import Apart
from pytest_vllm.wire.recording import Request
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from collections.abc import Sequence

PLAIN = Request("POST", "/v1/completions", json={"prompt": "x"})
MASKED = Request("POST", "/v1/completions", json={"prompt": "x", "allowed_token_ids": [7]})


async def sent(server: Server, requests: Sequence[Request]) -> list[int]:
    """How many were on their way, each time that one was sent, itself included; leaking ones as negatives."""
    apart, running, seen = Apart(server), 0, []

    async def one(request: Request) -> None:
        nonlocal running
        async with apart.kept(request):
            running += 1
            seen.append(-running if request is MASKED else running)
            await asyncio.sleep(0.01)
            running -= 1

    await asyncio.gather(*map(one, requests))
    return seen


@pytest.mark.parametrize("version", ["0.27.0", "0.30.0"])
def test_alone_where_it_leaks(version: str) -> None:
    """Masked requests have the server to themselves; the others still share it, before and after."""
    server = Server("http://x", "m", launcher="docker", version=version)
    seen = asyncio.run(sent(server, [PLAIN, PLAIN, MASKED, PLAIN, MASKED, PLAIN]))
    assert [one for one in seen if one < 0] == [-1, -1]
    assert sorted(one for one in seen if one > 0) == [1, 1, 2, 2]


@pytest.mark.parametrize(
    "server",
    [
        Server("http://x", "m", launcher="docker", version="0.31.0"),
        Server("http://x", "m", launcher="sim", version="0.27.0", simulated=True),
    ],
)
def test_beside_where_it_does_not(server: Server) -> None:
    """A version that is free of it, and the simulator, get all at once."""
    seen = asyncio.run(sent(server, [PLAIN, MASKED, MASKED]))
    assert [abs(one) for one in seen] == [1, 2, 3]


def test_given_up_while_it_waits() -> None:
    """One that is cancelled before its turn keeps nobody waiting."""

    async def scene() -> list[str]:
        apart, done = Apart(Server("http://x", "m", launcher="docker", version="0.27.0")), []

        async def one(name: str, request: Request) -> None:
            async with apart.kept(request):
                await asyncio.sleep(0.02)
                done.append(name)

        first = asyncio.create_task(one("first", PLAIN))
        await asyncio.sleep(0)
        masked = asyncio.create_task(one("masked", MASKED))
        await asyncio.sleep(0)
        masked.cancel()
        await asyncio.wait_for(asyncio.gather(first, one("last", PLAIN)), 1)
        return done

    assert asyncio.run(scene()) == ["first", "last"]
