"""The measuring driver over TLS."""

from __future__ import annotations

import shutil
import ssl
import time
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.measure.driver import Call, Driver
from pytest_vllm.measure.run import perform
from pytest_vllm.measure.talk import body_of
from pytest_vllm.measure.workload import Workload
from tests.unit.measure.peer import QUESTION
from tests.unit.measure.serving import Asked, serving
from tests.unit.wire.certificate import certificate_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_vllm.wire.server import Server

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
#: More than a record of TLS holds, and more than one read takes.
LONG = b"0123456789" * 20_000


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return certificate_in(tmp_path)


@pytest.fixture
def server(certificate: Path) -> Iterator[Server]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)

    def answer(asked: Asked) -> None:
        asked.tell(200, LONG)

    with serving(answer, tls=context) as server:
        yield server


def test_whole_answers_on_one_connection(
    server: Server, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Late reading is known there, too: the driver tells how late it may have been."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    driver = Driver(server.url)
    ended: list[Call] = []
    try:
        for number in range(1, 3):
            driver.submit(Call(QUESTION, ended.append, time.perf_counter()))
            deadline = time.perf_counter() + 10
            while len(ended) < number and time.perf_counter() < deadline:
                driver.step(0.05)
        free = len(driver._idle)
    finally:
        driver.close()

    assert [(call.error, body_of(call) == LONG.decode()) for call in ended] == [("", True), ("", True)]
    assert not driver.stamped
    assert len(driver.lags) == driver.reads == sum(len(call.pieces) for call in ended) > 2
    assert free == 1


def test_a_server_that_is_not_trusted_measures_nothing(server: Server) -> None:
    found = perform("x", Workload(), server)

    assert found.stopped.startswith("the server cannot be reached: ")
    assert "self-signed certificate" in found.stopped
    assert found.samples == ()
