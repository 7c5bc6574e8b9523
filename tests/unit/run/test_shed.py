"""A server that sheds load, as its operator told it to, is asked again, and is no fault."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_vllm.run import shed
from pytest_vllm.run.size import Sizes
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from pytest_vllm.wire.client import WireClient

BUSY = "The engine is currently busy and cannot accept new requests."
QUEUED = {"max-num-queued-reqs": 6}


class Client:
    """Answers with these statuses in turn, and with the last one from then on."""

    def __init__(self, *statuses: int, text: str = BUSY) -> None:
        """Nothing was asked."""
        self.statuses, self.text, self.asked = list(statuses), text, 0

    async def send(self, key: str, request: Request) -> Recording:
        """The next answer."""
        self.asked += 1
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return Recording(key, request, sent=0.0, status=status, chunks=((0.1, self.text.encode()),))


def sizes_of(client: Client, args: dict[str, Any], launcher: str = "sim") -> Sizes:
    """The rules for one server."""
    return Sizes(Server("http://x", "m", args=args, launcher=launcher), cast("WireClient", client))


def request_of(**body: Any) -> Request:
    """One for a short text."""
    return Request("POST", "/v1/completions", json={"prompt": "a", **body}, expect=200)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shed, "WAITS", (0.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("args", "launcher", "text", "times"),
    [
        (QUEUED, "sim", BUSY, 3),
        ({}, "attach", "429 Too Many Requests", 3),
        ({}, "attach", "<h1>503 Service Temporarily Unavailable</h1>", 3),
        ({}, "sim", BUSY, 1),
        (QUEUED, "sim", "Internal error", 1),
    ],
)
def test_what_was_turned_away_is_asked_again(
    args: dict[str, Any], launcher: str, text: str, times: int
) -> None:
    """Where the server may shed, and says so."""
    client = Client(503, 503, 200, text=text)
    answer = asyncio.run(sizes_of(client, args, launcher).taken("x", request_of()))

    assert (client.asked, answer.status) == (times, 200 if times == 3 else 503)


@pytest.mark.parametrize(
    ("body", "args", "excused"),
    [
        ({"n": 8}, QUEUED, True),
        ({"prompt": ["a"] * 8}, QUEUED, True),
        ({}, QUEUED, False),
        ({"prompt": [1, 2, 3]}, QUEUED, False),
        ({"n": 8}, {}, False),
    ],
)
def test_only_several_answers_at_once_may_be_too_many(
    body: dict[str, Any], args: dict[str, Any], excused: bool
) -> None:
    """A server that turns a single one away each time is no use to anybody."""
    sizes = sizes_of(Client(503), args)
    answer = asyncio.run(sizes.taken("x", request_of(**body)))

    assert bool(asyncio.run(sizes.refused(answer))) is excused


@pytest.mark.parametrize(("path", "count"), [("/v1/embeddings", 3), ("/v1/responses", 1)])
def test_the_items_of_a_response_are_one_prompt(path: str, count: int) -> None:
    assert Request("POST", path, json={"input": ["a", "b", "c"]}).prompts == count


def test_a_stream_is_turned_away_by_an_event() -> None:
    text = 'data: {"error": {"message": "' + BUSY + '", "code": 503}}\n\ndata: [DONE]\n\n'
    client = Client(200, text=text)
    asyncio.run(sizes_of(client, QUEUED).taken("x", request_of(stream=True)))

    assert client.asked == 4


def test_a_server_that_turns_everything_away_is_not_asked_for_ever() -> None:
    client = Client(503)
    sizes = sizes_of(client, QUEUED)

    async def all_of_them() -> None:
        for number in range(40):
            await sizes.refused(await sizes.taken(f"x{number}", request_of()))

    asyncio.run(all_of_them())
    assert client.asked == 40 + 3 * shed.HOPELESS
