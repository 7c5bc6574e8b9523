"""A trial that failed while this process was held up is made again: else the server lacked what it has."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, cast

import pytest

from pytest_vllm.run.capabilities import PROBES
from pytest_vllm.run.findings import Findings
from pytest_vllm.run.lag import Lag
from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from pytest_vllm.wire.client import WireClient

pytestmark = pytest.mark.usefixtures("briefly_held")


class Frozen:
    """A client that breaks so many times, each after a pause of the whole process, and is answered then."""

    def __init__(self, times: int, pause: float) -> None:
        self.times, self.pause, self.asked = times, pause, 0

    async def send(self, key: str, request: Request) -> Recording:
        self.asked += 1
        await asyncio.sleep(0)
        if self.asked > self.times:
            return Recording(key, request, status=200, chunks=())
        time.sleep(self.pause)  # noqa: ASYNC251 - it is what is tested
        return Recording(key, request, error="it broke", failure=Failure.RESET)


@pytest.mark.parametrize(
    ("times", "pause", "status", "asked"), [(1, 0.4, 200, 2), (9, 0.4, None, 3), (1, 0.0, None, 1)]
)
def test_a_trial(times: int, pause: float, status: int | None, asked: int) -> None:
    """Held up once; each time; never, so that the reset is the server's."""
    client = Frozen(times, pause)

    async def trial() -> Recording:
        async with Lag() as lag:
            server = Server("http://127.0.0.1:1", "m")
            return await Findings(cast("WireClient", client), server, None, PROBES, lag).chat()

    answer = asyncio.run(trial())

    assert (answer.status, client.asked) == (status, asked)
