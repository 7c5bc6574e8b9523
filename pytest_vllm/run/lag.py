"""Whether this process was held up while it waited: what it was to do at a moment, it did late."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

#: Seconds between two looks at the clock, and by how many one may come late.
TICK, HELD = 0.05, 0.25


class Lag:
    """Looks at the clock while a block runs: `async with Lag() as lag: …`, and then `lag.held`."""

    def __init__(self) -> None:
        """Nothing was late yet."""
        #: Whether the process was held up in the block.
        self.held = False
        self._due = 0.0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin to look."""
        self._due = time.perf_counter() + TICK
        self._task = asyncio.create_task(self._look())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """A last look: what held the block up to its end had no other."""
        self._judge()
        if self._task is not None:
            self._task.cancel()

    async def _look(self) -> None:
        while True:
            self._due = time.perf_counter() + TICK
            await asyncio.sleep(TICK)
            self._judge()

    def _judge(self) -> None:
        self.held = self.held or time.perf_counter() - self._due > HELD
