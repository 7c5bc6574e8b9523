"""A throw-away authority, and a server's and a client's certificate signed by it. For tests alone."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True)
class Authority:
    """Files in PEM.

    Args:
        ca: the authority's certificate.
        server: a server's certificate with its key, for localhost, vllm.test and 127.0.0.1.
        client: a client's certificate.
        key: and its key.
    """

    ca: Path
    server: Path
    client: Path
    key: Path

    def context(self, *, wants_client: bool = False) -> ssl.SSLContext:
        """How the server speaks TLS."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.server)
        if wants_client:
            context.load_verify_locations(self.ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def authority_in(folder: Path, names: str = "DNS:localhost,DNS:vllm.test,IP:127.0.0.1") -> Authority:
    """Made by openssl, valid for two days."""
    ca, ca_key = folder / "ca.pem", folder / "ca-key.pem"
    subject = ["-subj", "/O=Test Works/CN=Test Root"]
    _openssl("req", "-x509", *_KEY, "-days", "2", *subject, "-keyout", ca_key, "-out", ca)
    for name in ("server", "client"):
        request, extra = folder / f"{name}.csr", folder / f"{name}.ext"
        _openssl("req", *_KEY, "-subj", f"/CN={name}", "-keyout", folder / f"{name}-key.pem", "-out", request)
        extra.write_text(f"subjectAltName={names}\n")
        signed: list[str | Path] = [
            "-CA",
            ca,
            "-CAkey",
            ca_key,
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            extra,
        ]
        _openssl("x509", "-req", "-in", request, *signed, "-out", folder / f"{name}.pem")
    server, key = folder / "server.pem", folder / "server-key.pem"
    server.write_text(key.read_text() + server.read_text())
    return Authority(ca, server, folder / "client.pem", folder / "client-key.pem")


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)
