"""How an exchange failed is one of a list; recordings that knew no list are still read."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest

from pytest_vllm.wire.client import WireClient
from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import Recording, Request, dump, load
from pytest_vllm.wire.server import Server
from tests.unit.wire.fake import Call, fake_server


def of_format_1(error: str, status: int | None) -> str:
    """A recording as it was written before."""
    head, tail = dump(Recording("a.b", Request("GET", "/"), status=status, error=error)).splitlines()
    first, last = json.loads(head), json.loads(tail)
    del last["failure"]
    return f"{json.dumps({**first, 'version': 1})}\n{json.dumps(last)}\n"


@pytest.mark.parametrize(
    ("error", "status", "failure"),
    [
        ("", 200, None),
        ("not sent: a.c got no response", None, Failure.NOT_SENT),
        ("no connection to x:1: connection refused", None, Failure.NO_CONNECTION),
        ("no connection to x:1: no TLS: self-signed certificate", None, Failure.TLS),
        ("not complete within 5 s, and no response came", None, Failure.TIMEOUT_FIRST_BYTE),
        ("not complete within 5 s (status 200 and 7 bytes of the body had come)", 200, Failure.TIMEOUT_TOTAL),
        ("no byte came for 60 s (status 200 and 7 bytes …)", 200, Failure.TIMEOUT_SILENCE),
        ("given up: 3 exchanges in a row found no server", None, Failure.GIVEN_UP),
        ("the connection closed before the response head was complete", None, Failure.TRUNCATED),
        ("the connection broke: reset by peer (status 200 …)", 200, Failure.RESET),
        ("the body ended after 3 of 9 bytes (status 200 …)", 200, Failure.TRUNCATED),
        ("a chunk's size is not a hexadecimal number: 'zz'", 200, Failure.PROTOCOL),
    ],
)
def test_the_words_of_format_1_name_the_failure(
    error: str, status: int | None, failure: Failure | None
) -> None:
    assert load(of_format_1(error, status)).failure is failure


@pytest.mark.parametrize("failure", Failure)
def test_every_failure_survives_the_disk(failure: Failure) -> None:
    recording = Recording("a.b", Request("GET", "/"), error="x", failure=failure)

    assert load(dump(recording)).failure is failure


def test_an_unknown_failure_is_a_damaged_recording() -> None:
    text = dump(Recording("a.b", Request("GET", "/"), error="x", failure=Failure.TLS))

    with pytest.raises(ValueError, match="damaged"):
        load(text.replace('"tls"', '"gremlins"'))


def recorded(server: Server) -> Recording:
    """One exchange of the recorder."""

    async def run() -> Recording:
        async with WireClient(server, connect=5) as client:
            return await client.send("a", Request("GET", "/metrics"))

    return asyncio.run(run())


HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"
CHUNKS = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("says", "failure"),
    [
        (b"", Failure.TRUNCATED),
        (HEAD + b"abc", Failure.TRUNCATED),
        (CHUNKS + b"5\r\nab", Failure.TRUNCATED),
        (b"hello\r\n\r\n", Failure.PROTOCOL),
        (CHUNKS + b"zz\r\n", Failure.PROTOCOL),
        (HEAD + b"0123456789", Failure.PROTOCOL),
    ],
)
def test_how_a_response_fails_is_one_of_a_list(says: bytes, failure: Failure) -> None:
    async def handler(call: Call) -> None:
        await call.write(says)

    async def run() -> Recording:
        async with fake_server(handler) as fake, WireClient(Server(fake.url, "m")) as client:
            return await client.send("a", Request("GET", "/x"))

    found = asyncio.run(run())

    assert found.failure is failure
    assert found.error


def test_what_takes_too_long_says_how_far_it_was() -> None:
    """Before the first byte, in the middle, and silent in the middle."""

    async def handler(call: Call) -> None:
        if call.path != "/silent":
            await call.write(HEAD + b"abc")
        await call.closed_by_client()

    async def run() -> list[Failure | None]:
        async with fake_server(handler) as fake:
            async with WireClient(Server(fake.url, "m"), exchange=0.2) as client:
                first = [await client.send("a", Request("GET", path)) for path in ("/silent", "/begun")]
            async with WireClient(Server(fake.url, "m"), gap=0.1) as client:
                return [one.failure for one in (*first, await client.send("a", Request("GET", "/begun")))]

    assert asyncio.run(run()) == [
        Failure.TIMEOUT_FIRST_BYTE,
        Failure.TIMEOUT_TOTAL,
        Failure.TIMEOUT_SILENCE,
    ]


def test_who_is_not_there_and_who_hangs_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    refused = recorded(Server(f"http://127.0.0.1:{port}", "m"))
    unknown = recorded(Server("http://no-such-host.invalid", "m"))

    assert (refused.failure, unknown.failure) == (Failure.NO_CONNECTION, Failure.NO_CONNECTION)
    assert recorded(Server("http://127.0.0.1:1", "m")).failure is Failure.NO_CONNECTION


def test_a_request_that_cannot_be_made_is_not_sent() -> None:
    async def run() -> Recording:
        request = Request("GET", "/x", headers={"x-bad": "a\nb"})
        async with (
            fake_server(lambda call: call.answer({})) as fake,
            WireClient(Server(fake.url, "m")) as client,
        ):
            return await client.send("a", request)

    found = asyncio.run(run())

    assert found.failure is Failure.NOT_SENT
    assert found.error.startswith("not sent: ")
