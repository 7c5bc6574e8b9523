"""An image registry on the loopback with one tiny image in it, which holds a file and no program."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import tarfile
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME, TAG = "tiny", "1"
_KIND = "application/vnd.docker."
_PROCESSORS = {"x86_64": "amd64", "aarch64": "arm64"}


@contextmanager
def registry() -> Iterator[str]:
    """The image's name; engines speak plain HTTP to registries on the loopback."""
    answers = _answers()

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Manifests and blobs by their path."""
            kind, body = answers.get(self.path, ("application/json", b""))
            if not body:
                errors = {"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}
                body = json.dumps(errors).encode()
            self.send_response(200 if self.path in answers else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - the server looks for this name

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"127.0.0.1:{server.server_port}/{NAME}:{TAG}"
        server.shutdown()
        thread.join()


def _answers() -> dict[str, tuple[str, bytes]]:
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as files:
        member = tarfile.TarInfo("hello")
        member.size = 5
        files.addfile(member, io.BytesIO(b"hello"))
    layer = gzip.compress(tar.getvalue(), mtime=0)
    config = json.dumps(
        {
            "architecture": _PROCESSORS.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [_digest(tar.getvalue())]},
        }
    ).encode()
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": f"{_KIND}distribution.manifest.v2+json",
            "config": _descriptor(f"{_KIND}container.image.v1+json", config),
            "layers": [_descriptor(f"{_KIND}image.rootfs.diff.tar.gzip", layer)],
        }
    ).encode()
    answers = {"/v2/": ("application/json", b"{}")}
    for reference in (TAG, _digest(manifest)):
        kind = f"{_KIND}distribution.manifest.v2+json"
        answers[f"/v2/{NAME}/manifests/{reference}"] = (kind, manifest)
    for blob in (config, layer):
        answers[f"/v2/{NAME}/blobs/{_digest(blob)}"] = ("application/octet-stream", blob)
    return answers


def _descriptor(kind: str, blob: bytes) -> dict[str, object]:
    return {"mediaType": kind, "size": len(blob), "digest": _digest(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"
