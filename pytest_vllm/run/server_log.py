"""Keeps a server's log on disk while it runs, each line with the second of its arrival."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_vllm.launch.protocol import Handle

PERIOD = 0.2


class ServerLog:
    """Copies a handle's log lines to a file until closed; the file survives the server."""

    def __init__(self, handle: Handle, path: Path, redact: Callable[[str], str]) -> None:
        """Start copying."""
        self._handle, self._path, self._redact = handle, path, redact
        self._seen = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._pump, name="pytest-vllm server log", daemon=True)
        self._thread.start()

    def flush(self) -> None:
        """Write what has arrived until now."""
        with self._lock:
            lines = self._handle.logs(self._seen)
            self._seen += len(lines)
            if lines:
                now = time.time()
                with self._path.open("a", encoding="utf-8") as file:
                    file.writelines(f"{now:.3f} {self._redact(line)}\n" for line in lines)

    def close(self) -> None:
        """Write the last lines and stop. Idempotent."""
        self._stop.set()
        self._thread.join(timeout=5)
        self.flush()

    def _pump(self) -> None:
        while not self._stop.wait(PERIOD):
            self.flush()
