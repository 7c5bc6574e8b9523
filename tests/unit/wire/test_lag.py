"""An exchange that failed, or had something to do in time, while its client was held up is recorded again."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.declare.recordings import Recordings
from pytest_vllm.run import heldup
from pytest_vllm.run.lag import Lag
from pytest_vllm.run.recorder import record_all
from pytest_vllm.wire.client import WireClient
from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import Recording, Request, Undecided
from pytest_vllm.wire.scrape import Scraper
from pytest_vllm.wire.server import Server
from tests.unit.wire.fake import fake_server
from tests.unit.wire.test_record import Run, planned, says_its_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from pytest_vllm.run.plan import Planned
    from tests.unit.wire.fake import Call

PAUSE = 0.4

pytestmark = pytest.mark.usefixtures("briefly_held")


class HeldBefore(Lag):
    """Held up for as long, a little before whatever is asked about."""

    def __init__(self, before: float) -> None:
        super().__init__()
        self.before = before

    def seconds(self, begin: float, end: float, margin: float = 0.0) -> float:
        return self.before if margin and end > begin else 0.0


@pytest.mark.parametrize(
    ("timeout", "failure", "before", "held"),
    [
        (None, Failure.TIMEOUT_FIRST_BYTE, 2.0, 2.0),
        (None, Failure.RESET, 2.0, 2.0),
        (None, Failure.RESET, 0.2, 0.0),  # too short for anybody to give the client up
        (0.5, Failure.TIMEOUT_FIRST_BYTE, 2.0, 0.0),  # it left when it was meant to
        (0.5, Failure.RESET, 2.0, 2.0),
    ],
)
def test_what_held_the_client_up_before_counts_for_what_broke(
    timeout: float | None, failure: Failure, before: float, held: float
) -> None:
    recording = Recording("a", Request("POST", "/v1/completions", json={}, timeout=timeout), failure=failure)

    assert heldup.held_for(recording, HeldBefore(before), 1.0, 2.0) == held


def held_up_once(pause: float) -> Callable[[Call], Awaitable[None]]:
    """A server of this process that keeps all of it from running, at the first request."""
    count = iter(range(9))

    async def answer(call: Call) -> None:
        if call.path == "/metrics":
            await call.answer({}, 404)
            return
        if (number := next(count)) == 0:
            time.sleep(pause)  # noqa: ASYNC251 - it is what is tested
        await call.answer({"said": number})

    return answer


@pytest.mark.parametrize(("timed", "pause", "answer"), [(True, 0.4, 1), (True, 0.05, 0), (False, 0.4, 0)])
@pytest.mark.parametrize("alone", [True, False])
def test_what_a_client_does_in_time_is_done_again_when_it_was_held_up(
    tmp_path: Path, alone: bool, timed: bool, pause: float, answer: int
) -> None:
    """It was to leave at a moment, and could not; what has no such moment is taken as it came."""

    def ask(one: Planned, done: Mapping[str, Recording]) -> Request:
        return Request("POST", f"/{one.key}", json={}, timeout=5.0 if timed else None)

    record = Run(tmp_path)
    record([planned("left", alone=alone)], held_up_once(pause), build=ask)

    assert [call.path for call in record.calls].count("/left") == answer + 1
    assert record.store.get("left").ok == {"said": answer}
    assert record.progress == [("left", 1, 1)]


class Frozen(WireClient):
    """A client that is held up so many times, and whose exchanges fail then; answered afterwards."""

    times, pause = 1, PAUSE
    failure: Failure | None = Failure.NO_CONNECTION
    status: int | None = None
    asked = 0

    async def send(self, key: str, request: Request) -> Recording:
        if request.path == "/metrics":
            return await super().send(key, request)
        self.asked += 1
        if self.asked > self.times:
            return await super().send(key, request)
        time.sleep(self.pause)  # noqa: ASYNC251 - it is what is tested
        broken = Recording(key, request, status=self.status, failure=self.failure, seconds=self.pause)
        return broken.with_response(error="it broke" if self.failure else "")


def recorded(record: Run, *plan: Planned, path: str = "", **client: Any) -> Frozen:
    """The client after it has recorded these."""

    async def run() -> Frozen:
        async with fake_server(says_its_name) as fake:
            server = Server(fake.url, "m")
            async with Frozen(server) as frozen:
                vars(frozen).update(client)
                await record_all(
                    server,
                    list(plan),
                    frozen,
                    concurrency=2,
                    store=record.store,
                    on_done=record.on_done,
                    build=lambda one, _: Request("POST", path or f"/{one.key}", json={}),
                    scraper=Scraper(frozen, deadline=0.2, pause=0.0, grace=0.05),
                )
                return frozen

    return asyncio.run(run())


WAY = (
    Failure.NO_CONNECTION,
    Failure.PROXY,
    Failure.TLS,
    Failure.RESET,
    Failure.TRUNCATED,
    Failure.TIMEOUT_FIRST_BYTE,
    Failure.TIMEOUT_SILENCE,
    Failure.TIMEOUT_TOTAL,
)


@pytest.mark.parametrize("failure", WAY)
@pytest.mark.parametrize("alone", [True, False])
def test_what_fails_while_the_client_is_held_up_is_recorded_again(
    tmp_path: Path, alone: bool, failure: Failure
) -> None:
    record = Run(tmp_path)
    client = recorded(record, planned("a", alone=alone), failure=failure)

    assert client.asked == 2
    assert record.store.get("a").status == 200


@pytest.mark.parametrize("status", [408, 499, 502, 503, 504])
def test_a_proxy_that_gave_the_client_up_is_asked_again(tmp_path: Path, status: int) -> None:
    record = Run(tmp_path)
    recorded(record, planned("a"), failure=None, status=status)

    assert record.store.get("a").status == 200


@pytest.mark.parametrize(
    ("failure", "status", "pause"),
    [(Failure.RESET, None, 0.0), (Failure.PROTOCOL, None, PAUSE), (None, 500, PAUSE), (None, 404, PAUSE)],
)
def test_what_the_server_did_stays_as_it_came(
    tmp_path: Path, failure: Failure | None, status: int | None, pause: float
) -> None:
    """A reset of a client that was there, an answer of the server's own."""
    record = Run(tmp_path)
    client = recorded(record, planned("a"), failure=failure, status=status, pause=pause)
    found = record.store.get("a")

    assert (client.asked, found.failure, found.status) == (1, failure, status)


@pytest.mark.parametrize("alone", [True, False])
def test_what_can_not_be_done_in_three_times_says_nothing_of_the_server(tmp_path: Path, alone: bool) -> None:
    record = Run(tmp_path)
    client = recorded(record, planned("a", alone=alone), times=9)
    found = record.store.get("a")

    assert client.asked == 3
    assert found.failure is Failure.HELD
    assert found.error.startswith("this process was held up for ")
    assert found.error.endswith(" s, each of 3 times: it broke")
    with pytest.raises(Undecided, match="held up"):
        Recordings(record.store).get("a")
    with pytest.raises(Undecided, match="held up"):
        Recordings(record.store).of("a")


def test_an_adapter_is_not_loaded_twice(tmp_path: Path) -> None:
    """The second time it is loaded already, which would look like a fault."""
    record = Run(tmp_path)
    client = recorded(record, planned("a", alone=True), path="/v1/load_lora_adapter")

    assert client.asked == 1
    assert record.store.get("a").failure is Failure.HELD


def test_a_held_up_client_does_not_take_the_server_for_dead(tmp_path: Path) -> None:
    """Three in a row found no connection, and nobody was there to make one."""
    record = Run(tmp_path)
    recorded(record, *(planned(f"e{number}") for number in range(5)), times=4)

    assert set(record.errors) == {"e0"}
    assert record.store.get("e0").failure is Failure.HELD
