"""The relay between a client and the server: passes on, records, hides the key, leads nowhere else."""

from __future__ import annotations

import asyncio
import http.client
import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.relay import Relay, script_for
from pytest_vllm.wire.server import Server
from tests.unit.wire.fake import Call, fake_server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pytest_vllm.wire.recording import Recording

KEY = "sk-a-secret-of-the-server-1"
SAID = {"job": ["a call", "the end"]}


def asked(
    relay: Relay, body: Any = None, path: str = "/v1/models", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """One request of a client, blocking."""
    connection = http.client.HTTPConnection(relay.url.removeprefix("http://"), timeout=10)
    content = json.dumps(body).encode() if body is not None else None
    connection.request("POST" if content else "GET", path, content, headers)
    answer = connection.getresponse()
    try:
        return answer.status, dict(answer.getheaders()), answer.read()
    except http.client.IncompleteRead as cut:
        return answer.status, dict(answer.getheaders()), cut.partial
    finally:
        connection.close()


async def relayed(
    handle: Callable[[Call], Awaitable[None]],
    ask: Callable[[Relay], Any],
    *,
    key: str | None = None,
    said: Mapping[str, list[str]] | None = None,
) -> tuple[Any, list[Recording], Relay]:
    """What a client gets through the relay, and what the relay recorded."""
    kept: list[Recording] = []
    async with fake_server(handle) as fake:
        server = Server(fake.url, "m", api_key=key)
        with Relay(server, kept.append, said, silence=5) as relay:
            got = await asyncio.to_thread(ask, relay)
            await asyncio.to_thread(until, lambda: len(kept) == 1 or not relay.route)
    return got, kept, relay


def until(true: Callable[[], bool]) -> None:
    """The recording is handed over right after the client has its last byte."""
    for _ in range(500):
        if true():
            return
        asyncio.run(asyncio.sleep(0.01))


def test_a_client_gets_what_the_server_said_and_it_is_recorded() -> None:
    async def handle(call: Call) -> None:
        await call.answer({"data": []})

    got, kept, _ = asyncio.run(relayed(handle, asked))

    assert got[0] == 200
    assert json.loads(got[2]) == {"data": []}
    assert kept[0].key == "relay.001"
    assert kept[0].json == {"data": []}


def test_the_server_gets_its_key_and_the_client_never_has_it() -> None:
    seen: list[str | None] = []

    async def handle(call: Call) -> None:
        seen.append(call.header("authorization"))
        await call.answer({})

    _, kept, relay = asyncio.run(
        relayed(handle, lambda relay: asked(relay, authorization=f"Bearer {relay.token}"), key=KEY)
    )

    assert seen == [f"Bearer {KEY}"]
    assert KEY not in relay.token
    assert KEY not in json.dumps(dict(kept[0].request.headers))


def test_another_key_of_the_client_stays_wrong() -> None:
    seen: list[str | None] = []

    async def handle(call: Call) -> None:
        seen.append(call.header("authorization"))
        await call.answer({}, status=401)

    got, _, _ = asyncio.run(relayed(handle, lambda relay: asked(relay, authorization="Bearer x"), key=KEY))

    assert (got[0], seen) == (401, ["Bearer x"])


def test_a_stream_that_breaks_off_breaks_off_for_the_client() -> None:
    async def handle(call: Call) -> None:
        await call.stream(b"data: 1\n\n", end=False)
        call.writer.close()

    got, kept, _ = asyncio.run(relayed(handle, asked))

    assert got[2] == b"data: 1\n\n"
    assert kept[0].failure is Failure.TRUNCATED


def test_a_server_that_is_gone_is_a_502_with_words() -> None:
    kept: list[Recording] = []
    with Relay(Server("http://127.0.0.1:9", "m"), kept.append) as relay:
        status, _, body = asked(relay)

    assert status == 502
    assert b"no answer" in body


def test_it_leads_nowhere_else_and_says_who_was_wanted() -> None:
    with Relay(Server("http://127.0.0.1:9", "m"), lambda _: None) as relay:
        whole = asked(relay, path="http://example.invalid/collect")
        connection = http.client.HTTPConnection(relay.url.removeprefix("http://"), timeout=10)
        connection.request("CONNECT", "telemetry.invalid:443")
        tunnel = connection.getresponse().status
        connection.close()

    assert (whole[0], tunnel) == (403, 403)
    assert list(relay.elsewhere) == ["http://example.invalid/collect", "telemetry.invalid:443"]


def test_a_script_is_put_into_the_request_that_has_its_mark() -> None:
    bodies: list[Any] = []

    async def handle(call: Call) -> None:
        bodies.append(json.loads(call.body))
        await call.answer({})

    body = {"messages": [{"role": "user", "content": "Do it. [[say:job]]"}], "tools": [{}]}
    asyncio.run(relayed(handle, lambda relay: asked(relay, body, "/v1/chat/completions"), said=SAID))

    assert bodies == [{**body, "vllm_xargs": {"script": "a call"}}]


def turns(*roles: str, tools: bool = True) -> dict[str, Any]:
    """A conversation whose first message holds the mark."""
    first = {"role": "user", "content": "Do it. [[say:job]]"}
    return {"messages": [first, *({"role": role} for role in roles)], "tools": [{}] if tools else []}


def test_what_is_said_follows_the_models_own_turns() -> None:
    assert script_for(turns(), SAID) == "a call"
    assert script_for(turns("assistant", "tool", "tool"), SAID) == "the end"
    assert script_for(turns("assistant", "tool", "assistant", "user"), SAID) == "the end"


def test_without_tools_the_last_turn_is_said() -> None:
    assert script_for(turns(tools=False), SAID) == "the end"


def test_several_items_of_responses_are_one_turn() -> None:
    items = [{"role": "user", "content": "[[say:job]]"}, {"type": "reasoning"}, {"type": "function_call"}]
    three = {"job": ["one", "two", "three"]}

    assert script_for({"input": items, "tools": [{}]}, three) == "two"
    assert script_for({"input": "[[say:job]]", "tools": [{}]}, three) == "one"


def test_an_unknown_mark_and_none_say_nothing() -> None:
    assert script_for({"prompt": "[[say:other]]"}, SAID) is None
    assert script_for({"prompt": "Hello"}, SAID) is None
