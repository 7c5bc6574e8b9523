"""WireClient keeps what came, when it came, and says in words what went wrong."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.wire.client import WireClient
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.server import Server
from tests.unit.wire.fake import Call, Fake, fake_server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

KEY = "token-0123456789abcdef"
GET = Request("GET", "/x")


def exchange(
    handler: Callable[[Call], Awaitable[None]], request: Request = GET, **limits: Any
) -> tuple[Recording, Fake]:
    async def run() -> tuple[Recording, Fake]:
        async with (
            fake_server(handler) as fake,
            WireClient(Server(fake.url, "m", api_key=KEY), **limits) as client,
        ):
            return await client.send("an.exchange", request), fake

    return asyncio.run(run())


def raw(*pieces: bytes) -> Callable[[Call], Awaitable[None]]:
    async def handler(call: Call) -> None:
        await call.write(*pieces)

    return handler


async def fine(call: Call) -> None:
    await call.answer({"ok": True})


def test_an_answer_is_kept_whole() -> None:
    recording, fake = exchange(fine, Request("POST", "/v1/x?a=b", json={"text": "é", "n": None}))
    call = fake.calls[0]

    assert (recording.status, recording.json, recording.error) == (200, {"ok": True}, "")
    assert recording.header("content-type") == "application/json"
    assert call.line == "POST /v1/x?a=b HTTP/1.1"
    assert call.body == '{"text":"é","n":null}'.encode()
    assert call.header("content-type") == "application/json"
    assert call.header("accept-encoding") == "identity"


def test_the_key_is_sent_and_never_kept() -> None:
    async def echo(call: Call) -> None:
        await call.answer({"authorization": call.header("authorization")}, x_echo=KEY)

    recording, fake = exchange(echo)

    assert fake.calls[0].header("authorization") == f"Bearer {KEY}"
    assert KEY not in repr(recording)
    assert recording.json == {"authorization": "Bearer " + "*" * len(KEY)}
    assert recording.header("content-length") == str(len(recording.body))


def test_a_header_of_the_request_replaces_ours_and_none_removes_it() -> None:
    _, fake = exchange(fine, Request("GET", "/x", headers={"authorization": None, "Accept": "text/html"}))

    assert fake.calls[0].header("authorization") is None
    assert [value for name, value in fake.calls[0].headers if name.lower() == "accept"] == ["text/html"]


def test_raw_content_goes_out_as_it_is() -> None:
    request = Request("POST", "/x", content='{"a": NaN, \udcff', headers={"Content-Type": "text/plain"})
    recording, fake = exchange(fine, request)

    assert fake.calls[0].body == b'{"a": NaN, \xff'
    assert fake.calls[0].header("content-type") == "text/plain"
    assert recording.request == request


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/v1/../metrics", "/v1/../metrics"),
        ("/a%2Fb", "/a%2Fb"),
        ("/ä b", "/%C3%A4%20b"),
        ("//x?a=[1]#", "//x?a=[1]#"),
    ],
)
def test_the_path_is_not_tidied_up(path: str, target: str) -> None:
    _, fake = exchange(fine, Request("GET", path))

    assert fake.calls[0].path == target


def test_repeated_headers_stay_repeated() -> None:
    recording, _ = exchange(
        raw(b"HTTP/1.1 204 No Content\r\nX-A: 1\r\nSet-Cookie: s=1\r\nX-A: 2\r\nset-cookie: t=2\r\n\r\n")
    )

    assert [pair for pair in recording.headers if pair[0] == "x-a"] == [("x-a", "1"), ("x-a", "2")]
    assert [name for name, _ in recording.headers].count("set-cookie") == 2


def test_cookies_and_redirects_lead_nowhere() -> None:
    async def run() -> list[Call]:
        async def redirect(call: Call) -> None:
            await call.answer({}, 307, location="/elsewhere", set_cookie="s=1")

        async with fake_server(redirect) as fake, WireClient(Server(fake.url, "m")) as client:
            first = await client.send("a", GET)
            await client.send("b", GET)
            assert first.status == 307
            return fake.calls

    calls = asyncio.run(run())

    assert [call.path for call in calls] == ["/x", "/x"]
    assert calls[1].header("cookie") is None


def test_the_base_url_may_have_a_path() -> None:
    async def run() -> str:
        async with fake_server(fine) as fake, WireClient(Server(fake.url + "/prefix/", "m")) as client:
            await client.send("a", GET)
            return fake.calls[0].path

    assert asyncio.run(run()) == "/prefix/x"


def test_every_read_has_its_time() -> None:
    written = []

    async def handler(call: Call) -> None:
        await call.stream(end=False)
        for number in range(5):
            written.append(time.perf_counter())
            piece = b"data: %d\n\n" % number
            await call.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        await call.write(b"0\r\n\r\n")

    before = time.time()
    recording, _ = exchange(handler)
    times = [at for at, _ in recording.chunks]

    assert [event.data for event in recording.events] == ["0", "1", "2", "3", "4"]
    assert len(times) == 5
    assert recording.headers_at is not None
    assert 0 < recording.headers_at <= times[0] <= times[-1] <= recording.seconds
    assert all(
        b - a <= d - c + 0.5 for a, b, c, d in zip(times, times[1:], written, written[1:], strict=False)
    )
    assert times == sorted(times)
    assert before <= recording.sent <= time.time()


def test_a_huge_event_and_a_thousand_events() -> None:
    huge = b"data: " + b"x" * 3_000_000 + b"\n\n"
    many = b"".join(b'data: {"n": %d}\n\n' % number for number in range(1_000))

    async def handler(call: Call) -> None:
        await call.stream(huge, many[:5_001], many[5_001:], b"data: [DONE]\n\n")

    recording, _ = exchange(handler)

    assert recording.error == ""
    assert len(recording.events) == 1_002
    assert len(recording.events[0].data) == 3_000_000
    assert recording.events[-2].json == {"n": 999}


def test_bytes_that_are_no_utf8_are_kept() -> None:
    async def handler(call: Call) -> None:
        await call.stream(b"data: \xff\xfe\n\n")

    recording, _ = exchange(handler)

    assert recording.body == b"data: \xff\xfe\n\n"
    assert recording.events[0].faults == ("not UTF-8: invalid start byte at byte 6",)


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (3, 3)])
def test_abort_closes_after_that_many_events(count: int, expected: int) -> None:
    closed = []

    async def handler(call: Call) -> None:
        await call.stream(b": ping\n\n", *(b"data: %d\n\n" % n for n in range(count)), end=False)
        closed.append(await call.closed_by_client())

    recording, _ = exchange(handler, Request("GET", "/x", abort_after=count))

    assert closed == [True]
    assert (recording.aborted, recording.error, len(recording.events)) == (True, "", expected)


def test_abort_after_zero_closes_after_the_head() -> None:
    closed = []

    async def handler(call: Call) -> None:
        await call.stream(end=False)
        closed.append(await call.closed_by_client())

    recording, _ = exchange(handler, Request("GET", "/x", abort_after=0))

    assert closed == [True]
    assert (recording.status, recording.aborted, recording.error) == (200, True, "")


def test_a_stream_that_ends_first_is_not_aborted() -> None:
    async def handler(call: Call) -> None:
        await call.stream(b"data: 1\n\n")

    recording, _ = exchange(handler, Request("GET", "/x", abort_after=5))

    assert (recording.aborted, recording.error) == (False, "")


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def run() -> Recording:
        async with WireClient(Server(f"http://127.0.0.1:{port}", "m")) as client:
            return await client.send("a", GET)

    recording = asyncio.run(run())

    assert recording.status is None
    assert recording.error == f"no connection to 127.0.0.1:{port}: connection refused"


def test_an_unknown_host() -> None:
    async def run() -> Recording:
        async with WireClient(Server("http://no-such-host.invalid", "m")) as client:
            return await client.send("a", GET)

    assert asyncio.run(run()).error.startswith("no connection to no-such-host.invalid:80: ")


HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("pieces", "error"),
    [
        ((), "the connection closed before the response head was complete"),
        ((b"HTTP/1.1 200 OK\r\ncont",), "the connection closed before the response head was complete"),
        ((b"<html>no HTTP</html>\r\n\r\n",), "the response head is not HTTP/1.1: "),
        (
            (HEAD, b"12345"),
            "the body ended after 5 of 10 bytes (status 200 and 5 bytes of the body had come)",
        ),
        ((HEAD, b"1234567890AB"), "2 bytes came after the end of the body"),
        ((CHUNKED, b"5\r\nhello\r\n"), "the connection ended inside the chunked body"),
        ((CHUNKED, b"xyz\r\nhello\r\n"), "a chunk's size is not a hexadecimal number: 'xyz'"),
        ((CHUNKED, b"3\r\nhello\r\n"), "a chunk goes on after its size: 'lo'"),
    ],
)
def test_what_breaks_is_said(pieces: tuple[bytes, ...], error: str) -> None:
    recording, _ = exchange(raw(*pieces))

    assert recording.error.startswith(error)


def test_a_body_without_length_ends_with_the_connection() -> None:
    recording, _ = exchange(raw(b"HTTP/1.0 200 OK\r\n\r\n", b"all of ", b"it"))

    assert (recording.text, recording.error) == ("all of it", "")


def test_a_half_closed_stream_is_noticed() -> None:
    async def handler(call: Call) -> None:
        await call.stream(b"data: 1\n\n", end=False)
        call.writer.write_eof()
        await call.closed_by_client()

    recording, _ = exchange(handler)

    assert recording.error.startswith("the connection ended inside the chunked body")
    assert len(recording.events) == 1


async def silence(call: Call) -> None:
    await call.stream(b"data: 1\n\n", end=False)
    await call.closed_by_client()


def test_a_silent_stream_is_given_up() -> None:
    recording, _ = exchange(silence, gap=0.05)

    assert recording.error == "no byte came for 0.05 s (status 200 and 9 bytes of the body had come)"
    assert recording.seconds >= 0.05


def test_an_exchange_has_a_limit() -> None:
    recording, _ = exchange(silence, Request("GET", "/x", timeout=0.05))

    assert recording.error == "not complete within 0.05 s (status 200 and 9 bytes of the body had come)"


def test_a_server_that_never_answers() -> None:
    async def handler(call: Call) -> None:
        await call.closed_by_client()

    recording, _ = exchange(handler, exchange=0.05)

    assert recording.status is None
    assert recording.error == "not complete within 0.05 s, and no response came"


@pytest.mark.parametrize(
    "request_",
    [
        Request("POST", "/x", json={"a": {1, 2}}),
        Request("GET", "/x", headers={"bad name": "x"}),
        Request("GET", "/x", headers={"x": "a\r\nb: c"}),
        Request("GET", "/x", headers={"host": None}),
    ],
)
def test_what_is_no_request_is_not_sent(request_: Request) -> None:
    recording, fake = exchange(fine, request_)

    assert recording.error.startswith("not sent: ")
    assert fake.calls == []


def test_informational_responses_are_passed_over() -> None:
    recording, _ = exchange(
        raw(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
    )

    assert (recording.status, recording.text) == (200, "hi")


def test_a_cancelled_exchange_closes_its_connection() -> None:
    async def run() -> bool:
        begun, closed = asyncio.Event(), asyncio.Event()

        async def handler(call: Call) -> None:
            await call.stream(b"data: 1\n\n", end=False)
            begun.set()
            await call.closed_by_client()
            closed.set()

        async with fake_server(handler) as fake, WireClient(Server(fake.url, "m")) as client:
            task = asyncio.create_task(client.send("a", GET))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with asyncio.timeout(10):
                return await closed.wait()

    assert asyncio.run(run())


@pytest.mark.parametrize(
    ("choice", "lasts"), [("required", True), ({"type": "function", "name": "f"}, True), ("auto", False)]
)
def test_a_call_that_has_to_be_made_may_be_held_back_until_it_is_whole(choice: Any, lasts: bool) -> None:
    """A constraint writes it, and what streams it may wait for its end: silence says nothing until then."""

    async def slow(call: Call) -> None:
        await call.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 16\r\n\r\n")
        await asyncio.sleep(0.3)
        await call.write(b"data: [DONE]\n\n\n\n")

    body = {"model": "m", "tools": [{"type": "function"}], "tool_choice": choice, "stream": True}
    recording, _ = exchange(slow, Request("POST", "/v1/responses", json=body), gap=0.05, exchange=5.0)

    assert (recording.failure is None) is lasts
