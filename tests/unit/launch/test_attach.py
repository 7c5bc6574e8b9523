"""Attaching says whose fault it is when no server is reached: the proxy's, TLS's, or the address's."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.launch.attach import check_reachable, proxy_in_front
from pytest_vllm.launch.health import Health
from pytest_vllm.launch.protocol import BootError
from pytest_vllm.profile.model import Profile, ServerPart, TlsPart
from pytest_vllm.wire.policy import Access
from tests.unit.wire.authority import Authority, authority_in
from tests.unit.wire.raw import forward_proxy, head_of, raw_server

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Iterator

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority_in(tmp_path_factory.mktemp("authority"))


@contextmanager
def answering(says: bytes, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """`HOST:PORT` of what answers every request so."""

    def handle(connection: socket.socket) -> None:
        if tls is None:
            head_of(connection)
            connection.sendall(says)
            return
        with tls.wrap_socket(connection, server_side=True) as secure:
            head_of(secure)
            secure.sendall(says)

    with raw_server(handle) as where:
        yield where


def refused(url: str, access: Access | None = None) -> BootError:
    """What attaching says; fails when it says nothing."""
    with pytest.raises(BootError) as caught:
        check_reachable(url, access)
    return caught.value


def page(status: str, text: str, *fields: str) -> bytes:
    """An answer with an HTML page."""
    body = f"<html><body><h1>{text}</h1></body></html>"
    head = "".join(f"{one}\r\n" for one in (f"HTTP/1.1 {status}", f"content-length: {len(body)}", *fields))
    return f"{head}\r\n{body}".encode()


def test_a_dead_proxy_is_named_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://me:secret@127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    found = refused("http://vllm.test:8000")

    assert found.what == "the proxy in front of http://vllm.test:8000 is at fault"
    assert found.evidence == (
        "the proxy http://127.0.0.1:9 (http_proxy) cannot be reached: connection refused",
    )
    assert found.try_[0] == "without the proxy: NO_PROXY=vllm.test, or --vllm-proxy=none"


@pytest.mark.parametrize(
    ("says", "words"),
    [
        (page("407 Who are you", "login", "proxy-authenticate: Basic"), "answered 407 Basic itself"),
        (
            page("503 No", "no such host", "x-squid-error: ERR_DNS_FAIL 0"),
            "answered 503 ERR_DNS_FAIL 0 itself",
        ),
        (
            page("502 No", "", "proxy-status: corp; error=dns_error"),
            "answered 502 corp; error=dns_error itself",
        ),
    ],
)
def test_what_the_proxy_answers_itself_is_not_the_servers(says: bytes, words: str) -> None:
    with forward_proxy(says) as proxy:
        found = refused("http://vllm.test:8000", Access(proxy=proxy.url))

    assert "the proxy in front" in found.what
    assert words in found.evidence[0]


def test_a_server_behind_a_proxy_is_ready_when_it_says_so() -> None:
    with answering(OK) as where, forward_proxy() as proxy:
        access = Access(proxy=proxy.url)
        check_reachable(f"http://vllm.test:{where.rpartition(':')[2]}", access)

        assert Health(access)(f"http://vllm.test:{where.rpartition(':')[2]}")


@needs_openssl
def test_health_over_tls_wants_the_authority_named(authority: Authority) -> None:
    with answering(OK, authority.context()) as where:
        url = f"https://localhost:{where.rpartition(':')[2]}"
        found = refused(url)

        assert found.what == f"TLS with {url} is refused"
        assert "certificate verify failed" in found.evidence[0]
        assert "Test Root" in found.evidence[0]
        assert "--vllm-ca-file=FILE" in found.try_[0]
        assert "http://" not in " ".join((*found.try_, *found.evidence, found.means))
        assert not Health()(url)
        assert Health(Access(ca=str(authority.ca)))(url)


@needs_openssl
def test_a_web_server_that_wants_a_client_certificate(authority: Authority) -> None:
    """Nginx lets the handshake pass and answers 400."""
    says = page("400 Bad Request", "No required SSL certificate was sent")
    with answering(says, authority.context()) as where:
        url = f"https://localhost:{where.rpartition(':')[2]}"
        found = refused(url, Access(ca=str(authority.ca)))

    assert found.what == f"TLS with {url} is refused"
    assert "No required SSL certificate was sent" in found.evidence[0]
    assert found.try_[0].startswith("give one: --vllm-client-cert=FILE")


def test_plain_http_to_a_port_of_tls() -> None:
    """Nginx answers in plain words, Go too; nobody waits a quarter of an hour for that."""
    with answering(page("400 Bad Request", "Client sent an HTTP request to an HTTPS server.")) as where:
        found = refused(f"http://{where}")

    assert found.what == f"what listens at http://{where} speaks TLS alone"
    assert found.try_ == (f"--vllm-url=https://{where}",)


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable", "401 Unauthorized"])
def test_other_answers_are_left_to_the_waiting(status: str) -> None:
    with answering(page(status, "certificate, HTTPS")) as where:
        check_reachable(f"http://{where}")


def test_the_proxy_is_known_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the header line; a server of our own has none, nor has a replay's address that is none."""
    monkeypatch.setenv("all_proxy", "http://me:secret@proxy.corp:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)

    def said(**server: object) -> str:
        return proxy_in_front(Profile(server=ServerPart.model_validate(server)))

    assert said(launcher="attach", url="spark:8000") == "http://proxy.corp:3128 (all_proxy)"
    assert said(launcher="attach", url="127.0.0.1:8000") == ""
    assert said(launcher="attach", url="spark:8000", proxy="none") == ""
    assert said(launcher="sim", url="spark:8000") == ""


@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        ("socks5://x:1", "http://HOST:PORT"),
        ("x:1", "http://HOST:PORT"),
        ("http://me:pw@x:1", "never written"),
    ],
)
def test_a_proxy_in_a_profile_is_checked(proxy: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ServerPart.model_validate({"proxy": proxy})


def test_a_key_needs_its_certificate() -> None:
    with pytest.raises(ValueError, match="name its certificate too"):
        TlsPart(key="k.pem")


def by_path(**answers: tuple[int, bytes]) -> Callable[[socket.socket], None]:
    """Answers `/health` and `/v1/models` with a status and a body each; 0 closes without a word."""

    def handle(connection: socket.socket) -> None:
        name = "health" if "/health" in head_of(connection) else "models"
        status, body = answers[name]
        if status:
            head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            connection.sendall(head.encode() + body)

    return handle


@pytest.mark.parametrize("status", [400, 404, 405])
def test_a_server_that_refuses_everything_is_named_at_once(status: int) -> None:
    """Nobody waits a quarter of an hour for another answer."""
    with raw_server(by_path(health=(status, b""), models=(status, b"go away"))) as where:
        error = refused(f"http://{where}")

    assert "refuses /health and the list of models" in error.what
    assert error.evidence == (f"GET /health: {status}", f"GET /v1/models: {status} go away")


@pytest.mark.parametrize("health", [401, 403, 404])
@pytest.mark.parametrize("models", [200, 401, 403])
def test_a_health_that_wants_a_key_is_not_waited_for(health: int, models: int) -> None:
    """The probe asks for the models with the key, and says so when there is none."""
    with raw_server(by_path(health=(health, b""), models=(models, b"{}"))) as where:
        check_reachable(f"http://{where}")

        assert Health()(f"http://{where}")


def test_a_server_whose_first_connections_are_closed_is_waited_for() -> None:
    """Docker's proxy takes every connection and closes it until something listens in the container."""
    with raw_server(by_path(health=(0, b""), models=(0, b""))) as where:
        check_reachable(f"http://{where}")

        assert not Health()(f"http://{where}")


def test_a_server_that_is_busy_is_waited_for() -> None:
    with raw_server(by_path(health=(429, b""), models=(429, b""))) as where:
        check_reachable(f"http://{where}")

        assert not Health()(f"http://{where}")
