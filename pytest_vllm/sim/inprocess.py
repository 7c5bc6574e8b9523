"""A simulator in a thread of this process: for tests, and for running many of them side by side."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Self

from pytest_vllm.sim.boot.start import Boot
from pytest_vllm.sim.cli import configured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TIMEOUT = 30.0


class Simulated:
    """`with Simulated(["MODEL", "--max-model-len", "4096"]) as sim: … sim.url …`.

    Args:
        argv: serve arguments and `--sim-…` options; host and port are set here.
        environ: environment variables beside those of this process.

    `lines` is the log. Leaving the block ends the server. Raises UsageError or BootFailure, as a start does.
    """

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str] | None = None) -> None:
        """Read the arguments; nothing runs yet."""
        self.lines: list[str] = []
        words = [*argv, "--host", "127.0.0.1", "--port", "0"]
        deployment, hooks = configured(words, {**os.environ, **(environ or {})})
        self.boot = Boot(deployment, hooks, self.lines.append)
        self._loop: asyncio.AbstractEventLoop
        self._thread = threading.Thread(target=self._run, name="simulated vLLM", daemon=True)

    @property
    def url(self) -> str:
        """Base URL."""
        return f"http://127.0.0.1:{self.boot.port}"

    def __enter__(self) -> Self:
        """Start and wait until it listens."""
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self.boot.up(), self._loop).result(TIMEOUT)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        """End it."""
        asyncio.run_coroutine_threadsafe(self.boot.down(), self._loop).result(TIMEOUT)
        self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(asyncio.sleep(0))
        finally:
            self._loop.close()
