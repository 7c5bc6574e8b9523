"""A certificate that nobody has signed but itself, with its key, for servers on the loopback."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def certificate_in(folder: Path) -> Path:
    """One file with both, made by openssl; valid for localhost and 127.0.0.1."""
    path = folder / "server.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", path, "-out", f"{path}.crt"], check=True, capture_output=True)
    path.write_text(path.read_text() + path.with_name("server.pem.crt").read_text())
    return path
