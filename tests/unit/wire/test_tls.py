"""WireClient speaks TLS to whom the platform trusts, and says why it does not to others."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.wire.client import WireClient
from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.server import Server
from tests.unit.wire.certificate import certificate_in
from tests.unit.wire.fake import Call, fake_server

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return certificate_in(tmp_path)


def exchange(certificate: Path) -> Recording:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)

    async def handler(call: Call) -> None:
        await call.stream(b"data: 1\n\n", b"data: [DONE]\n\n")

    async def run() -> Recording:
        async with fake_server(handler, tls=context) as fake, WireClient(Server(fake.url, "m")) as client:
            return await client.send("a", Request("GET", "/x"))

    return asyncio.run(run())


def test_a_trusted_server_is_recorded(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    recording = exchange(certificate)

    assert recording.error == ""
    assert [event.data for event in recording.events] == ["1", "[DONE]"]


def test_an_untrusted_server_is_refused(certificate: Path) -> None:
    recording = exchange(certificate)

    assert recording.status is None
    assert recording.failure is Failure.TLS
    assert recording.error.startswith("no TLS with 127.0.0.1:")
    assert "self-signed certificate (issued by CN=localhost); name its authority" in recording.error
