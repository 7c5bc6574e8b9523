"""The HTTP server: framing, keep-alive, pipelining, refusals, clients that leave."""

from __future__ import annotations

import json
import re
import socket
import time
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.sim.http.request import BadRequest, RequestReader

if TYPE_CHECKING:
    from tests.unit.sim.client import Client

GET = b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n"


def raw(sim: Client, data: bytes, *, until: bytes = b"", seconds: float = 5.0) -> bytes:
    """What comes back for these bytes, until a text has come or the connection is closed."""
    with socket.create_connection(("127.0.0.1", sim.sim.boot.port), timeout=seconds) as sock:
        sock.sendall(data)
        got = b""
        while not (until and until in got):
            part = sock.recv(65536)
            if not part:
                break
            got += part
        return got


def test_pipelined_requests_are_answered_in_order(sim: Client) -> None:
    """Three requests in one packet give three answers, the last of which closes."""
    last = GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
    got = raw(sim, GET + GET.replace(b"/version", b"/nope") + last)

    assert re.findall(rb"HTTP/1.1 (\d+)", got) == [b"200", b"404", b"200"]


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00garbage\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /tokenize HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST /tokenize HTTP/1.1\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n",
        b"POST /tokenize HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    ],
    ids=["tls", "http2", "negative-length", "two-lengths", "bad-chunk", "long-url"],
)
def test_what_is_no_request_is_refused_in_plain_text(sim: Client, data: bytes) -> None:
    """400 and a closed connection, as uvicorn does."""
    got = raw(sim, data)

    assert got.startswith(b"HTTP/1.1 400 ")
    assert got.endswith(b"Invalid HTTP request received.")


def test_many_headers_and_a_missing_host_are_served(sim: Client) -> None:
    """The server has no limit where the real one has none."""
    lines = b"".join(b"x-%d: y\r\n" % number for number in range(300))
    got = raw(sim, b"GET /version HTTP/1.1\r\n" + lines + b"connection: close\r\n\r\n")

    assert got.startswith(b"HTTP/1.1 200 ")


def test_a_chunked_body_in_pieces_is_read(sim: Client) -> None:
    """Bodies may come chunked and late."""
    body = json.dumps({"prompt": "Hello"}).encode()
    head = b"POST /tokenize HTTP/1.1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    parts = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:5], body[5:]))
    got = raw(sim, head + parts + b"0\r\n\r\n", until=b"]")

    assert b'"count"' in got


def test_the_reader_waits_for_the_rest() -> None:
    """Half a request is no request."""
    reader = RequestReader()
    reader.feed(GET[:20])
    assert reader.next() is None

    reader.feed(GET[20:])
    found = reader.next()
    assert found is not None
    assert (found.method, found.path, found.keep_alive) == ("GET", "/version", True)


def test_the_reader_refuses_a_body_of_two_lengths() -> None:
    """Two lengths are an attack, not a request."""
    reader = RequestReader()
    reader.feed(b"POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n")

    with pytest.raises(BadRequest):
        reader.next()


def test_a_client_that_leaves_frees_its_request(sim: Client) -> None:
    """The engine runs nothing once the connection is closed."""
    body = {
        "messages": [{"role": "user", "content": "Tell a story."}],
        "max_tokens": 4000,
        "ignore_eos": True,
    }
    data = json.dumps({**body, "stream": True}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\ncontent-type: application/json\r\n"
    raw(sim, head + b"content-length: %d\r\n\r\n%b" % (len(data), data), until=b'"content":"')

    deadline = time.monotonic() + 5
    while sim.counter("vllm:num_requests_running") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sim.counter("vllm:num_requests_running") == 0
    assert sim.counter("vllm:kv_cache_usage_perc") == 0
