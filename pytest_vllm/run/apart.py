"""Requests that a version of vLLM lets show in what is computed beside them: these are sent by themselves.

What such a request leaves behind would be held against all that shares a batch with it, and hide what else is
wrong with those. The row of `facts/faults.toml` that names the thread is told by the preflight.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pytest_vllm.wire.recording import Request
    from pytest_vllm.wire.server import Server


@dataclass(frozen=True)
class Leaking:
    """A field whose effect reaches the neighbours of a request.

    Args:
        field: of the request.
        before: the first version of vLLM that is free of it.
        issue: where it is described.
    """

    field: str
    before: str
    issue: str


#: Whoever moves to another row of the batch leaves its mask in the old one, where the next request takes it.
LEAKING = (Leaking("allowed_token_ids", "0.31.0", "vllm-project/vllm#43894"),)


class Apart:
    """Keeps what leaks apart from all else; everything else goes on side by side.

    Args:
        server: whose version says what leaks. The simulator leaks nothing that nobody asked for.
    """

    def __init__(self, server: Server) -> None:
        """Nothing is on its way yet."""
        own = () if server.simulated else LEAKING
        self._fields = [one.field for one in own if not server.at_least(one.before)]
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
