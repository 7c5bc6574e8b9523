"""Requests that a version of vLLM lets show in what is computed beside them: these are sent by themselves.

What such a request leaves behind would be held against all that shares a batch with it, and hide what else is
wrong with those. Which fields do is in `facts/faults.toml` (`alone`), whose rows the preflight reports.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pytest_vllm.facts.faults import fields_sent_alone

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pytest_vllm.wire.recording import Request
    from pytest_vllm.wire.server import Server


class Apart:
    """Keeps what leaks apart from all else; everything else goes on side by side.

    Args:
        server: whose version says what leaks. The simulator leaks nothing that nobody asked for.
    """

    def __init__(self, server: Server) -> None:
        """Nothing is on its way yet."""
        self._fields = frozenset() if server.simulated else fields_sent_alone(server.version)
        self._changed = asyncio.Condition()
        self._running = 0
        self._leaking = 0

    @asynccontextmanager
    async def kept(self, request: Request) -> AsyncIterator[None]:
        """While this request is on its way: alone if it leaks, else beside whatever does not."""
        if not self._fields:
            yield
            return
        body = request.json if isinstance(request.json, dict) else {}
        leaks = any(body.get(name) is not None for name in self._fields)
        self._leaking += leaks
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: self._free(leaks))
                self._running += 1
            try:
                yield
            finally:
                self._running -= 1
        finally:
            self._leaking -= leaks
            async with self._changed:
                self._changed.notify_all()

    def _free(self, leaks: bool) -> bool:
        """Whether a request may be sent now: what leaks waits for all others, and goes before new ones."""
        return not self._running if leaks else not self._leaking
