"""Every client of ours by every way: recorder, measuring driver and single questions; and what they say."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.measure.asking import Asking
from pytest_vllm.measure.driver import Driver
from pytest_vllm.measure.talk import Talk, body_of
from pytest_vllm.wire.ask import ask
from pytest_vllm.wire.client import WireClient
from pytest_vllm.wire.failure import Failure, TransportError
from pytest_vllm.wire.policy import Access, route_to
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.server import Server
from tests.unit.wire.authority import Authority, authority_in
from tests.unit.wire.fake import Call, fake_server
from tests.unit.wire.raw import forward_proxy, head_of, raw_server

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
BODY = b"vllm:num_requests_running 0\n"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority_in(tmp_path_factory.mktemp("authority"))


def recorded(server: Server) -> Recording:
    """One exchange of the recorder."""

    async def run() -> Recording:
        async with WireClient(server, connect=5) as client:
            return await client.send("a", Request("GET", "/metrics"))

    return asyncio.run(run())


def as_recorder(server: Server) -> bytes:
    """The body, or the fault as an exception."""
    found = recorded(server)
    if found.failure is not None:
        raise TransportError(found.failure, found.error)
    return found.body


def as_driver(server: Server) -> bytes:
    driver = Driver(server.url, access=server.access)
    try:
        driver.open(1)
        talk = Talk(driver, Asking(server, driver.route))
        call = talk.ask(talk.asking.get("/metrics"), timeout=5)
        if call.failure is not None:
            raise TransportError(call.failure, call.error)
        return body_of(call).encode()
    finally:
        driver.close()


def as_question(server: Server) -> bytes:
    return ask(route_to(server.url, server.access), "/metrics", timeout=5).body


CLIENTS = pytest.mark.parametrize("client", [as_recorder, as_driver, as_question])


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[str, list[str]]]:
    """A server of one body; its URL, and the request lines that it gets."""
    lines: list[str] = []

    async def handler(call: Call) -> None:
        lines.append(call.line)
        await call.answer(BODY, connection="close")

    async with fake_server(handler, tls=tls) as fake:
        yield fake.url, lines


def tried(client: Callable[[Server], bytes], server: Server) -> bytes | TransportError:
    """What it got, or why not."""
    try:
        return client(server)
    except TransportError as error:
        return error


def through(
    client: Callable[[Server], bytes],
    url: str,
    access: Access | None = None,
    tls: ssl.SSLContext | None = None,
) -> tuple[bytes | TransportError, list[str]]:
    """One request to a server whose port replaces PORT in the URL."""

    async def run() -> tuple[bytes | TransportError, list[str]]:
        async with serving(tls) as (real, lines):
            server = Server(url.replace("PORT", real.rpartition(":")[2]), "m", access=access or Access())
            return await asyncio.to_thread(tried, client, server), lines

    return asyncio.run(run())


@CLIENTS
def test_a_base_path_stands_in_front_of_every_path(client: Callable[[Server], bytes]) -> None:
    assert through(client, "http://127.0.0.1:PORT/llm/") == (BODY, ["GET /llm/metrics HTTP/1.1"])


@CLIENTS
def test_the_environments_proxy_is_left_out_for_this_machine(
    client: Callable[[Server], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    assert through(client, "http://127.0.0.1:PORT")[0] == BODY


@CLIENTS
def test_a_dead_proxy_is_said_to_be_at_fault(
    client: Callable[[Server], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where its address was found."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with pytest.raises(OSError, match=r"the proxy http://127\.0\.0\.1:9 \(http_proxy\) .*connection refused"):
        client(Server("http://vllm.test:8000", "m"))


@CLIENTS
@pytest.mark.parametrize("secure", [False, pytest.param(True, marks=needs_openssl)])
def test_a_proxy_passes_requests_on(
    client: Callable[[Server], bytes], secure: bool, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain ones with their whole URL, TLS in a tunnel; its login goes along."""
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)

    with forward_proxy() as proxy:
        monkeypatch.setenv("https_proxy" if secure else "http_proxy", proxy.url.replace("//", "//me:secret@"))
        url = f"http{'s' if secure else ''}://vllm.test:PORT"
        access = Access(ca=str(authority.ca) if secure else "")
        body, lines = through(client, url, access, authority.context() if secure else None)
    port = proxy.lines[0].rpartition(":")[2].partition("/")[0].partition(" ")[0]
    line = f"CONNECT vllm.test:{port} HTTP/1.1" if secure else f"GET http://vllm.test:{port}/metrics HTTP/1.1"

    assert body == BODY
    assert lines == ["GET /metrics HTTP/1.1"]
    assert proxy.lines == [line]
    assert proxy.logins == ["proxy-authorization: Basic bWU6c2VjcmV0"]


@CLIENTS
def test_a_proxy_that_opens_no_tunnel_is_at_fault(client: Callable[[Server], bytes]) -> None:
    with forward_proxy(b"HTTP/1.1 403 Forbidden\r\n\r\n") as proxy:
        found = tried(client, Server("https://vllm.test:8000", "m", access=Access(proxy=proxy.url)))

    assert isinstance(found, TransportError)
    assert found.failure is Failure.PROXY
    assert "opened no tunnel to vllm.test:8000: it answered 'HTTP/1.1 403 Forbidden'" in str(found)


@needs_openssl
@CLIENTS
@pytest.mark.parametrize("how", ["file", "folder", "environment"])
def test_an_own_authority_is_trusted_once_it_is_named(
    client: Callable[[Server], bytes],
    how: str,
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    access = Access()
    if how == "file":
        access = Access(ca=str(authority.ca))
    elif how == "folder":
        digest = _hash_of(authority.ca)
        (tmp_path / f"{digest}.0").write_text(authority.ca.read_text())
        access = Access(ca=str(tmp_path))
    else:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca))

    assert through(client, "https://localhost:PORT", access, authority.context())[0] == BODY


def _hash_of(certificate: Path) -> str:
    command = ["openssl", "x509", "-hash", "-noout", "-in", str(certificate)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@needs_openssl
@CLIENTS
def test_a_certificate_that_is_refused_is_said_with_its_authority(
    client: Callable[[Server], bytes], authority: Authority
) -> None:
    """And what to do, which is not to go without TLS."""
    found, _ = through(client, "https://localhost:PORT", None, authority.context())

    assert isinstance(found, TransportError)
    assert found.failure is Failure.TLS
    assert "certificate verify failed: unable to get local issuer certificate" in str(found)
    assert "(issued by O=Test Works, CN=Test Root); name its authority: --vllm-ca-file=FILE" in str(found)
    assert "http://" not in str(found)


@needs_openssl
@CLIENTS
def test_a_name_that_the_certificate_lacks(client: Callable[[Server], bytes], tmp_path: Path) -> None:
    made = authority_in(tmp_path, names="DNS:other.test")
    found, _ = through(client, "https://localhost:PORT", Access(ca=str(made.ca)), made.context())

    assert isinstance(found, TransportError)
    assert found.failure is Failure.TLS
    assert "not valid for 'localhost'; use a name that the certificate carries" in str(found)


@needs_openssl
@pytest.mark.parametrize("client", [as_recorder, as_question])
def test_a_client_certificate_is_asked_for_and_shown(
    client: Callable[[Server], bytes], authority: Authority
) -> None:
    tls, ca = authority.context(wants_client=True), str(authority.ca)
    shown = Access(ca, str(authority.client), str(authority.key))
    refused, _ = through(client, "https://localhost:PORT", Access(ca), tls)

    assert through(client, "https://localhost:PORT", shown, tls)[0] == BODY
    assert isinstance(refused, TransportError)
    # a server of asyncio's hangs up without an alert, so this is all that anybody can say
    assert refused.failure in (Failure.TRUNCATED, Failure.RESET)
    assert "over TLS it may want a client certificate: --vllm-client-cert=FILE" in str(refused)


@needs_openssl
def test_the_driver_shows_a_client_certificate_too(authority: Authority) -> None:
    shown = Access(str(authority.ca), str(authority.client), str(authority.key))

    assert (
        through(as_driver, "https://localhost:PORT", shown, authority.context(wants_client=True))[0] == BODY
    )


@needs_openssl
@CLIENTS
@pytest.mark.parametrize("access", [Access(ca="/no/such.pem"), Access(certificate="/no/such.pem")])
def test_a_file_that_is_not_there_is_named(
    client: Callable[[Server], bytes], access: Access, authority: Authority
) -> None:
    found, _ = through(client, "https://localhost:PORT", access, authority.context())

    assert isinstance(found, TransportError)
    assert found.failure is Failure.TLS
    assert "/no/such.pem cannot be used: No such file or directory" in str(found)


@CLIENTS
@pytest.mark.parametrize(
    ("says", "words"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak TLS"), (b"", "no TLS with 127.0.0.1:")],
)
def test_a_server_without_tls_is_not_called_untrusted(
    client: Callable[[Server], bytes], says: bytes, words: str
) -> None:
    """It answers the handshake in plain HTTP, or hangs up."""

    def handle(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(says)

    with raw_server(handle) as where:
        found = tried(client, Server(f"https://{where}", "m"))

    assert isinstance(found, TransportError)
    assert found.failure is Failure.TLS
    assert words in str(found)


@CLIENTS
@pytest.mark.parametrize("prefix", ["", "/llm"])
def test_a_unix_socket(client: Callable[[Server], bytes], prefix: str, tmp_path: Path) -> None:
    """As `vllm serve --uds` listens on one."""
    heads: list[list[str]] = []

    def handle(connection: socket.socket) -> None:
        heads.append(head_of(connection).lower().split("\r\n")[:2])
        head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        connection.sendall(head % len(BODY) + BODY)

    with raw_server(handle, tmp_path / "vllm.sock") as path:
        found = tried(client, Server(f"unix:{path}:{prefix}" if prefix else f"unix:{path}", "m"))

    assert found == BODY
    assert heads[-1] == [f"get {prefix}/metrics http/1.1", "host: localhost"]


@CLIENTS
def test_a_unix_socket_that_is_not_there(client: Callable[[Server], bytes], tmp_path: Path) -> None:
    found = tried(client, Server(f"unix:{tmp_path}/none.sock", "m"))

    assert isinstance(found, TransportError)
    assert found.failure is Failure.NO_CONNECTION
    assert "none.sock: No such file or directory" in str(found)


def test_a_byte_now_and_then_does_not_hold_a_question_up() -> None:
    """One deadline for all of an answer, not for each of its bytes."""

    async def handler(call: Call) -> None:
        await call.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        while not call.reader.at_eof():
            await call.write(b"x")
            await asyncio.sleep(0.01)

    async def run() -> tuple[float, str]:
        async with fake_server(handler) as fake:
            began = time.perf_counter()
            with pytest.raises(TransportError) as caught:
                await asyncio.to_thread(ask, route_to(fake.url), "/x", timeout=0.3)
            assert caught.value.failure is Failure.TIMEOUT_TOTAL
            return time.perf_counter() - began, str(caught.value)

    seconds, words = asyncio.run(run())

    assert seconds < 5
    assert "no complete answer from 127.0.0.1" in words
