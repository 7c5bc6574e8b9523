"""Waiting for a server: ready, dead, stalled, late or interrupted, in a time that is moved by hand."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.launch.protocol import BootError, Exit
from pytest_vllm.launch.wait import INTERVAL, Boot, Progress, wait_ready
from pytest_vllm.profile.model import BootPart
from tests.unit.launch.fakes import HandClock, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMITS = BootPart(timeout=900, stalled=240)


@pytest.fixture
def clock() -> HandClock:
    """At rest."""
    return HandClock()


@pytest.fixture
def server() -> ScriptedServer:
    """Alive, silent, not yet well."""
    return ScriptedServer()


def wait(server: ScriptedServer, clock: HandClock, limits: BootPart = LIMITS) -> tuple[Boot, list[Progress]]:
    """Wait with everything that was told meanwhile."""
    told: list[Progress] = []
    boot = wait_ready(server, limits, told.append, clock, lambda _: server.healthy)
    return boot, told


def failed(server: ScriptedServer, clock: HandClock, limits: BootPart = LIMITS) -> BootError:
    """Wait in vain."""
    with pytest.raises(BootError) as caught:
        wait(server, clock, limits)
    return caught.value


def test_ready(server: ScriptedServer, clock: HandClock) -> None:
    """The time until the first healthy answer, the phases on the way, and the slowest of them."""
    clock.at(10, server.say("INFO vLLM API server version 0.32.0"))
    clock.at(20, server.say("Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:00<00:00]"))
    clock.at(100, server.say("GPU KV cache size: 407,648 tokens"))
    clock.at(110, server.get_well)

    boot, told = wait(server, clock)

    assert boot.url == server.url
    assert boot.seconds == pytest.approx(110, abs=INTERVAL)
    assert [name for name, _ in boot.phases] == [
        "starting",
        "loading the program",
        "loading weights",
        "sizing KV cache",
    ]
    slowest, seconds = boot.slowest
    assert slowest == "loading weights"
    assert seconds == pytest.approx(80, abs=2 * INTERVAL)
    assert boot.facts == {"kv-cache-tokens": 407648}
    assert {progress.phase for progress in told} == {name for name, _ in boot.phases}


def test_progress_tells_the_age_of_the_last_line(server: ScriptedServer, clock: HandClock) -> None:
    """From two seconds of silence on."""
    clock.at(5, server.say("Loading safetensors checkpoint shards:  47% Completed | 7/15 [00:00<00:00]"))
    clock.at(40, server.get_well)

    _, told = wait(server, clock)
    texts = list(dict.fromkeys(progress.text for progress in told))

    assert "loading weights, 7 of 15 shards" in texts
    assert "loading weights, 7 of 15 shards, last log line 31s ago" in texts
    assert not [text for text in texts if "line 1s ago" in text]


def test_sizes_read_as_a_list() -> None:
    """As the terminal shows them."""
    progress = Progress(300, "sizing KV cache", "61.2 GiB, 12.6 sequences of 32768 tokens", 1.0)

    assert progress.text == "sizing KV cache: 61.2 GiB, 12.6 sequences of 32768 tokens"


def test_dead_server_is_told_at_the_next_look(server: ScriptedServer, clock: HandClock) -> None:
    """With status, time, phase and the first cause of its log."""
    clock.at(192, server.say("Available KV cache memory: 6.4 GiB"))
    clock.at(192, server.say("ValueError: No available memory for the cache blocks."))
    clock.at(192.1, server.die(Exit(1)))
    began = clock.time

    error = failed(server, clock)

    assert clock.time - began < 193
    assert error.what == "the container exited with status 1 after 3:12, while sizing KV cache: 6.4 GiB"
    assert error.evidence == ("ValueError: No available memory for the cache blocks.   (server.log:2)",)


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (Exit(137, oom=True, signal="SIGKILL"), "was killed because memory ran out"),
        (Exit(-15, signal="SIGTERM"), "was ended by SIGTERM"),
        (Exit(None), "ended"),
    ],
)
def test_ways_to_end(server: ScriptedServer, clock: HandClock, ended: Exit, words: str) -> None:
    """Each in its own words."""
    server.ended = ended

    assert failed(server, clock).what == f"the container {words} after 0:00, while starting"


def test_answer_of_another_server_is_not_believed(server: ScriptedServer, clock: HandClock) -> None:
    """Ours died because somebody else has its port, and that one is healthy."""
    with pytest.raises(BootError, match="exited with status 1"):
        wait_ready(server, LIMITS, None, clock, lambda _: _die_and_answer(server))


def _die_and_answer(server: ScriptedServer) -> bool:
    server.ended = Exit(1)
    return True


def test_silence_is_a_stall(server: ScriptedServer, clock: HandClock) -> None:
    """Counted from the last line, and told apart from a start that takes too long."""
    clock.at(100, server.say("Starting to load model m..."))

    error = failed(server, clock)

    assert clock.time - 1000 == pytest.approx(340, abs=INTERVAL)
    assert error.what == "the container logged nothing for 4:00, while loading weights"
    assert "[boot] stalled" in " ".join(error.try_)
    assert error.evidence == ("Starting to load model m...",)


def test_chatter_without_end_is_late(server: ScriptedServer, clock: HandClock) -> None:
    """A server that keeps logging runs into the timeout, not into the stall."""
    for second in range(0, 1000, 30):
        clock.at(
            second, server.say(f"Loading safetensors checkpoint shards: {second}% Completed | {second}/1000")
        )

    error = failed(server, clock)

    assert clock.time - 1000 == pytest.approx(900, abs=INTERVAL)
    assert error.what.startswith("the container was not ready within 15:00, while loading weights, ")
    assert "[boot] timeout" in " ".join(error.try_)


def test_server_without_a_log_never_stalls(server: ScriptedServer, clock: HandClock) -> None:
    """An attached one: only the timeout ends the waiting, and no age is told."""
    server.has_logs, server.description = False, "server at http://spark:8000, already running"
    told: list[Progress] = []
    with pytest.raises(BootError, match="the server was not ready within 15:00"):
        wait_ready(server, LIMITS, told.append, clock, lambda _: False)

    assert {progress.line_age for progress in told} == {None}


def test_start_that_failed_in_the_background(server: ScriptedServer, clock: HandClock) -> None:
    """A refused pull is told as it is."""
    server.failure = BootError("the image could not be pulled")

    assert failed(server, clock) is server.failure


def test_unknown_port_is_waited_for(server: ScriptedServer, clock: HandClock) -> None:
    """A container that still waits for its image has no URL."""
    server.url, server.healthy = None, True

    def publish() -> None:
        server.url = "http://127.0.0.1:2"

    clock.at(30, publish)

    assert wait(server, clock)[0].url == "http://127.0.0.1:2"


def test_interrupt_leaves_at_once(server: ScriptedServer, clock: HandClock) -> None:
    """Ctrl-C goes through; nothing swallows it."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    clock.at(3, interrupt)
    with pytest.raises(KeyboardInterrupt):
        wait(server, clock)

    assert clock.time - 1000 == pytest.approx(3, abs=INTERVAL)


class _Answers(BaseHTTPRequestHandler):
    status: dict[str, int]

    def do_GET(self) -> None:
        self.send_response(self.status.get(self.path, 404))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def answers() -> Iterator[type[_Answers]]:
    """A server on the loopback; `answers.status` says what it answers."""

    class Answers(_Answers):
        status: dict[str, int] = {}  # noqa: RUF012 - made anew for each test

    listening = HTTPServer(("127.0.0.1", 0), Answers)
    Answers.status["url"] = listening.server_port
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield Answers
    listening.shutdown()
    thread.join()
    listening.server_close()


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({"/health": 200}, True),
        ({"/health": 503}, False),
        ({"/health": 500, "/v1/models": 200}, False),
        ({"/v1/models": 200}, True),
        ({"/v1/models": 401}, True),
        ({}, False),
    ],
)
def test_health(
    server: ScriptedServer, clock: HandClock, answers: type[_Answers], status: dict[str, int], ready: bool
) -> None:
    """200 is ready; where a proxy hides /health, models that are listed or guarded are enough."""
    server.url = f"http://127.0.0.1:{answers.status['url']}"
    answers.status.update(status)
    limits = BootPart(timeout=1, stalled=10)
    if ready:
        assert wait_ready(server, limits, None, clock).url == server.url
    else:
        with pytest.raises(BootError):
            wait_ready(server, limits, None, clock)
