"""Names, addresses and signals: the small ends of launching."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.facts.launchers import LAUNCHERS
from pytest_vllm.launch.attach import base_url, check_reachable
from pytest_vllm.launch.owner import own
from pytest_vllm.launch.protocol import BootError, LaunchContext
from pytest_vllm.launch.registry import launcher_for
from pytest_vllm.launch.signals import Interrupted, ending_signals, noting
from pytest_vllm.launch.sim import sim_arguments
from pytest_vllm.profile.model import Profile, ServerPart

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize("name", LAUNCHERS)
def test_launchers_know_their_name(name: str) -> None:
    """The one they are asked for by."""
    assert launcher_for(name).name == name


def test_unknown_launcher() -> None:
    """The nearest one is offered."""
    with pytest.raises(ValueError, match="did you mean docker"):
        launcher_for("dokcer")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("http://spark:8000", "http://spark:8000"),
        ("http://spark:8000/", "http://spark:8000"),
        ("http://spark:8000/v1", "http://spark:8000"),
        ("http://spark:8000/v1/", "http://spark:8000"),
        ("http://spark:8000/v1/chat/completions", "http://spark:8000"),
        ("spark:8000", "http://spark:8000"),
        (" 10.0.0.7:8000/v1 ", "http://10.0.0.7:8000"),
        ("https://gate.example/llm/v1", "https://gate.example/llm"),
        ("https://gate.example/v10", "https://gate.example/v10"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
        ("unix:/run/vllm.sock", "unix:/run/vllm.sock"),
        ("unix:///run/vllm.sock", "unix:/run/vllm.sock"),
        ("unix:/run/vllm.sock:/llm/v1", "unix:/run/vllm.sock:/llm"),
    ],
)
def test_base_urls(given: str, expected: str) -> None:
    """What people paste becomes the base URL."""
    assert base_url(given) == expected


@pytest.mark.parametrize(
    "given", ["htp://spark:8000", "ftp://spark", "http://", "http://spark:port", "file:///x"]
)
def test_no_url(given: str) -> None:
    """Told with one that would do."""
    with pytest.raises(BootError, match="is not a URL of an HTTP server") as caught:
        base_url(given)

    assert caught.value.try_[0].startswith("--vllm-url=http://")


def test_login_in_a_url_is_refused_and_not_repeated() -> None:
    """It would end up in reports."""
    with pytest.raises(BootError) as caught:
        base_url("http://me:hunter2@spark:8000")

    assert "hunter2" not in f"{caught.value.what} {caught.value.evidence} {caught.value.try_}"


class _Redirect(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(308)
        self.send_header("Location", "https://127.0.0.1/llm/health")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def redirecting() -> Iterator[str]:
    """The URL of a server that sends everybody elsewhere."""
    server = HTTPServer(("127.0.0.1", 0), _Redirect)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_redirect_is_told(redirecting: str) -> None:
    """Clients do not follow it with a POST."""
    with pytest.raises(BootError, match=r"redirects to https://127\.0\.0\.1/llm/health") as caught:
        check_reachable(redirecting)

    assert caught.value.try_ == ("--vllm-url=https://127.0.0.1/llm",)


def test_something_that_speaks_no_http() -> None:
    """A port that answers with other words, such as TLS or a database."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _address = listening.accept()
                    with connection:
                        connection.sendall(b"220 smtp ready\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(BootError, match="does not speak HTTP"):
            check_reachable(f"http://127.0.0.1:{port}")
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_unknown_name() -> None:
    """Told as such."""
    with pytest.raises(BootError, match=r"the name nowhere\.invalid is not known"):
        check_reachable("http://nowhere.invalid:8000")


def test_what_the_simulator_is_told() -> None:
    """Version, hardware, every defect once, the seed."""
    profile = Profile(
        name="p", hardware="dgx-spark", defects=["a", "b"], server=ServerPart(model="m", version="0.31.0")
    )
    context = LaunchContext("run", Path("/nowhere"), 1, defects=("b", "c"))
    told = sim_arguments(profile, context)

    assert told == [
        *("--sim-version", "0.31.0", "--sim-hardware", "dgx-spark"),
        *("--sim-defect", "a", "--sim-defect", "b", "--sim-defect", "c"),
        *("--sim-seed", "0"),
    ]


def test_simulator_takes_no_version_from_a_range() -> None:
    """`>=0.30` expects; it is no version to be."""
    profile = Profile(name="p", expect={"version": ">=0.30"})  # type: ignore[arg-type]

    assert "--sim-version" not in sim_arguments(profile, LaunchContext("run", Path("/nowhere"), 1))


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_signals_raise_and_are_given_back(name: str) -> None:
    """As Ctrl-C does, so that pytest ends the same way; these tests themselves may run under `nohup`."""
    number = getattr(signal, name)
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(Interrupted, match=name), ending_signals():
            os.kill(own().pid, number)
    finally:
        given_back = signal.signal(number, before)

    assert issubclass(Interrupted, KeyboardInterrupt)
    assert given_back is signal.SIG_DFL


def test_a_signal_that_is_noted_ends_nothing_and_the_second_does(request: pytest.FixtureRequest) -> None:
    """What is recorded then is finished with; whoever is in a hurry says so twice."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, and stays so
    request.addfinalizer(lambda: signal.signal(signal.SIGHUP, before))
    with ending_signals():
        with noting() as signals:
            os.kill(own().pid, signal.SIGTERM)
            assert signals == ["SIGTERM"]
            with pytest.raises(Interrupted, match="SIGHUP"):
                os.kill(own().pid, signal.SIGHUP)
        with pytest.raises(Interrupted, match="SIGTERM"):
            os.kill(own().pid, signal.SIGTERM)


def test_ignored_signal_stays_ignored() -> None:
    """`nohup pytest`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ending_signals():
            os.kill(own().pid, signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_handlers_stay_until_the_last_one_is_left_in_any_order() -> None:
    """Several servers are watched over at a time, and not closed in the order of their opening."""
    before = signal.getsignal(signal.SIGTERM)
    first, second = ExitStack(), ExitStack()
    first.enter_context(ending_signals())
    second.enter_context(ending_signals())
    first.close()
    with pytest.raises(Interrupted):
        os.kill(own().pid, signal.SIGTERM)
    second.close()

    assert signal.getsignal(signal.SIGTERM) is before


def test_other_threads_change_nothing() -> None:
    """Python allows handlers in the main thread only."""
    before = signal.getsignal(signal.SIGTERM)
    seen: list[object] = []

    def enter() -> None:
        with ending_signals():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()

    assert seen == [before]
