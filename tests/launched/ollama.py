"""A stand-in for Ollama on the loopback: models that are loaded, and what it was asked."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MODELS = ("qwen3:32b", "o'hara/llama3.2:3b")


class Ollama(ThreadingHTTPServer):
    """Lists what is loaded, unloads what is asked for by `keep_alive: 0`, and remembers every request."""

    def __init__(self, *, stubborn: bool = False, refuses: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.loaded, self.asked = list(MODELS), list[tuple[str, dict[str, object]]]()
        self.stubborn, self.refuses = stubborn, refuses

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class Answers(BaseHTTPRequestHandler):
    """`/api/ps` and `/api/generate`."""

    server: Ollama

    def do_GET(self) -> None:
        models = [{"name": name, "size_vram": 1 << 30} for name in self.server.loaded]
        self._answer(200, {"models": models} if self.path == "/api/ps" else {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, body))
        if self.server.refuses:
            self._answer(404, {"error": f"model '{body['model']}' not found"})
            return
        if not self.server.stubborn and body["keep_alive"] == 0:
            self.server.loaded.remove(body["model"])
        self._answer(200, {"done": True, "done_reason": "unload"})

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def running(*, stubborn: bool = False, refuses: bool = False) -> Iterator[Ollama]:
    """One that answers, on a free port."""
    with Ollama(stubborn=stubborn, refuses=refuses) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
