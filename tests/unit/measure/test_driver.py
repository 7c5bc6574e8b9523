"""The measuring driver: what it takes for a whole response, when it uses a connection again, what broke."""

from __future__ import annotations

import socket
import time

import pytest

from pytest_vllm.measure import driver as driving
from pytest_vllm.measure.driver import Call, Driver
from pytest_vllm.measure.talk import body_of
from pytest_vllm.wire.failure import Failure
from tests.unit.measure.peer import CHUNKED, QUESTION, Line, heard

PLAIN = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        (CHUNKED + b"5\r\nhello\r\n0\r\n\r\n",),
        (CHUNKED[:9], CHUNKED[9:-2], CHUNKED[-2:] + b"5\r\nhel", b"lo\r\n0\r\n\r\n"),
        (CHUNKED, b"5", b"\r\nhello", b"\r", b"\n0\r\n", b"\r\n"),
        (CHUNKED, *(bytes([one]) for one in b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n")),
        (CHUNKED, b"5;name=value\r\nhello\r\n0\r\n", b"trailer: x\r\n\r\n"),
        (PLAIN, b"hel", b"lo"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", PLAIN[:4], PLAIN[4:] + b"hello"),
    ],
)
def test_a_response_is_whole_when_its_last_byte_is_there(pieces: tuple[bytes, ...]) -> None:
    with Line() as line:
        call, peer = line.asked()
        line.tell(peer, call, *pieces[:-1])
        assert line.ended == []
        line.tell(peer, call, pieces[-1])

        assert line.ended == [call]
        assert (call.error, body_of(call), len(call.pieces)) == ("", "hello", len(pieces))
        assert sorted(call.times) == list(call.times)
        assert call.sent < call.times[0] <= call.times[-1] == call.ended


def test_content_that_looks_like_the_last_chunk_ends_nothing() -> None:
    """The read ends with the bytes of a last chunk, inside of a chunk."""
    with Line() as line:
        call, peer = line.asked()
        line.tell(peer, call, CHUNKED + b"7\r\nx\n0\r\n\r\n")
        assert line.ended == []
        line.tell(peer, call, b"\r\n0\r\n\r\n")

        assert (line.ended, body_of(call)) == ([call], "x\n0\r\n\r\n")


def test_a_free_connection_is_used_again() -> None:
    with Line() as line:
        first, peer = line.asked()
        line.tell(peer, first, PLAIN + b"hello")
        second = line.ask()
        assert heard(peer, len(QUESTION)) == QUESTION
        line.tell(peer, second, PLAIN + b"again")

        assert (body_of(first), body_of(second)) == ("hello", "again")
        assert (line.driver.peak, line.driver.active) == (1, 0)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: Keep-Alive, Close\r\ncontent-length: 5\r\n\r\n",
        b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\n",
    ],
)
def test_a_connection_that_the_server_closes_is_not_used_again(head: bytes) -> None:
    with Line() as line:
        first, peer = line.asked()
        line.tell(peer, first, head + b"hello")
        assert peer.recv(1) == b""
        second, peer = line.asked()
        line.tell(peer, second, PLAIN + b"again")

        assert [call.error for call in line.ended] == ["", ""]


def test_http_1_0_may_keep_its_connection() -> None:
    with Line() as line:
        first, peer = line.asked()
        line.tell(peer, first, b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nhi")
        line.ask()

        assert heard(peer, len(QUESTION)) == QUESTION


def test_a_connection_that_was_idle_for_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with Line() as line:
        first, peer = line.asked()
        line.tell(peer, first, PLAIN + b"hello")
        monkeypatch.setattr(driving, "IDLE", 0.0)
        line.asked()

        assert peer.recv(1) == b""


def test_an_idle_connection_may_be_closed_by_the_server() -> None:
    with Line() as line:
        first, peer = line.asked()
        line.tell(peer, first, PLAIN + b"hello")
        peer.close()
        line.driver.step(1.0)
        second, peer = line.asked()
        line.tell(peer, second, PLAIN + b"again")

        assert [call.error for call in line.ended] == ["", ""]


def crossed(line: Line) -> Call:
    """A call that was sent again: its kept connection was closed as it went out."""
    first, peer = line.asked()
    line.tell(peer, first, PLAIN + b"hello")
    second = line.ask()
    peer.close()
    line.until(lambda: line.driver.resent == 1)
    return second


def test_a_kept_connection_that_closes_as_a_call_goes_out() -> None:
    """The server decided to close it before it saw the request: it is sent once more, on another one."""
    with Line() as line:
        second = crossed(line)
        other = line.accept()
        line.driver.step(0.05)
        assert heard(other, len(QUESTION)) == QUESTION
        line.tell(other, second, PLAIN + b"again")

        assert [call.error for call in line.ended] == ["", ""]
        assert (second.again, line.driver.resent) == (True, 1)


def test_a_call_is_sent_again_once() -> None:
    with Line() as line:
        second = crossed(line)
        line.accept().close()
        line.until(lambda: len(line.ended) == 2)

        assert second.error == "the connection was closed before the response was whole"
        assert line.driver.resent == 1


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200 OK\r\n", CHUNKED + b"5\r\nhel", PLAIN + b"hel"])
def test_a_server_that_closes_in_the_middle(begun: bytes) -> None:
    with Line() as line:
        call, peer = line.asked()
        line.tell(peer, call, *([begun] if begun else []))
        peer.close()
        line.until(lambda: bool(line.ended))

        assert call.error == "the connection was closed before the response was whole"
        assert line.driver.active == 0


def test_a_response_without_an_end_is_broken_off() -> None:
    """However much more would come, the client holds no more of it than one read."""
    with Line() as line:
        call, peer = line.asked()
        call.most = 3000
        line.tell(peer, call, CHUNKED, b"3e8\r\n" + b"x" * 1000 + b"\r\n")
        assert line.ended == []
        line.tell(peer, call, b"7d0\r\n" + b"x" * 2000 + b"\r\n")

        assert line.ended == [call]
        assert call.failure is Failure.PROTOCOL
        assert call.error == "the response is longer than 2 KiB and was broken off there"
        assert sum(map(len, call.pieces)) < 2000
        assert len(call.times) == len(call.pieces)


def test_a_body_without_a_length_ends_with_its_connection() -> None:
    with Line() as line:
        call, peer = line.asked()
        line.tell(peer, call, b"HTTP/1.1 200 OK\r\n\r\n", b"hello")
        assert line.ended == []
        peer.close()
        line.until(lambda: bool(line.ended))

        assert (call.error, body_of(call)) == ("", "hello")


def test_a_connection_that_breaks() -> None:
    """The other end resets it."""
    with Line() as line:
        call, peer = line.asked()
        line.tell(peer, call, CHUNKED)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        peer.close()
        line.until(lambda: bool(line.ended))

        assert call.error.startswith("the connection broke: ")
        assert "reset" in call.error


def test_what_is_no_http_has_no_status() -> None:
    with Line() as line:
        call, peer = line.asked()
        line.tell(peer, call, b"SSH-2.0-OpenSSH\r\n\r\n")
        peer.close()
        line.until(lambda: bool(line.ended))

        assert call.head is not None
        assert (call.head.status, body_of(call)) == (0, "")


def test_a_long_request_is_sent_in_parts() -> None:
    """The other end reads late; nothing of it is lost."""
    message = b"POST /x HTTP/1.1\r\ncontent-length: 8000000\r\n\r\n" + b"ab" * 4_000_000
    with Line() as line:
        call = line.ask(message)
        peer = line.accept()
        line.driver.step(1.0)
        peer.settimeout(0.05)
        found = bytearray()
        deadline = time.perf_counter() + 10
        while len(found) < len(message) and time.perf_counter() < deadline:
            line.driver.step(0.0)
            found += peer.recv(1_000_000)

        assert bytes(found) == message
        line.tell(peer, call, PLAIN + b"hello")
        assert line.ended == [call]


def test_calls_that_take_too_long_are_given_up() -> None:
    """Younger ones go on; the connection of one that was given up is gone."""
    with Line() as line:
        old, first = line.asked()
        old.sent -= 5
        young, second = line.asked()

        assert line.driver.cancel(older_than=4, why="not answered within 4 s") == 1
        assert (old.error, line.ended) == ("not answered within 4 s", [old])
        assert first.recv(1) == b""
        line.tell(second, young, PLAIN + b"hello")
        assert young.error == ""


def test_connections_are_opened_beforehand() -> None:
    with Line() as line:
        line.driver.open(3)
        peers = [line.accept() for _ in range(3)]
        for _ in range(3):
            line.ask()

        assert [heard(peer, len(QUESTION)) for peer in peers] == [QUESTION] * 3
        assert line.driver.peak == 3


def closed_port() -> int:
    """A port of the loopback at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as once:
        port: int = once.getsockname()[1]
        return port


def test_a_server_that_refuses_is_told_at_once() -> None:
    driver = Driver(f"http://127.0.0.1:{closed_port()}")
    with pytest.raises(ConnectionError, match=r"127.0.0.1:\d+ takes no connections: connection refused"):
        driver.open(2)
    ended: list[Call] = []
    call = driver.submit(Call(QUESTION, ended.append, time.perf_counter()))
    while not ended:
        driver.step(0.05)
    driver.close()

    assert (call.error, call.sent) == ("takes no connections: connection refused", 0.0)


def test_a_name_with_two_addresses_is_reached_at_the_one_that_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Localhost is ::1 first on many machines, where a server may listen on 127.0.0.1 alone."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in ("127.0.0.2", "127.0.0.1")
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        driver = Driver(f"http://localhost:{port}")
        driver.open(1)
        call = driver.submit(Call(QUESTION, lambda _: None, time.perf_counter()))
        peer, _ = listener.accept()
        with peer:
            assert heard(peer, len(QUESTION)) == QUESTION
        driver.close()
        assert call.error == "given up"
