"""A server that computes nothing, and Locust's processes, once for all tests of a file."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.measure.swarm.crew import Crew
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

FIRST, GAP, EVENTS = 0.05, 0.01, 10


class Null:
    """The calibrator: the first event after 50 ms, nine more 10 ms apart."""

    def __init__(self, port: int) -> None:
        self.server = Server(f"http://127.0.0.1:{port}", "calibrator")

    def truth(self) -> list[dict[str, Any]]:
        """When each request came in and its events went out, by CLOCK_MONOTONIC; each is told once."""
        with urllib.request.urlopen(f"{self.server.url}/truth", timeout=10) as answer:  # noqa: S310
            rows: list[dict[str, Any]] = json.load(answer)
        return sorted(rows, key=lambda row: row["arrived"])


def address_of(listening: socket.socket) -> str:
    """Where it listens."""
    host, port = listening.getsockname()
    return f"{host}:{port}"


@pytest.fixture(scope="module")
def started() -> Iterator[Null]:
    command = [sys.executable, "-m", "tools.calibrator", "--first", str(FIRST)]
    command += ["--gap", str(GAP), "--events", str(EVENTS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield Null(int(server.stdout.readline()))
        finally:
            server.terminate()


@pytest.fixture
def null(started: Null) -> Null:
    """The server, which has forgotten what it was asked before."""
    started.truth()
    return started


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    """Two workers on this machine."""
    with Crew(2) as both:
        assert both.broken == ""
        yield both
