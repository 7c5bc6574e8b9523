"""When this process was held up: what it was to do at a moment, it did late.

A machine that lets this process run for no second of twenty sends nothing in them, and lets every time limit
pass. What failed then says nothing of the server.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Self

from pytest_vllm.measure.held import joined, length, near

if TYPE_CHECKING:
    from types import TracebackType

    from pytest_vllm.measure.held import Span

#: Seconds between two looks at the clock, and by how many one may come late.
TICK, HELD = 0.05, 0.25


class Lag:
    """Looks at the clock while a block runs: `async with Lag() as lag: …`, and then `lag.held`."""

    def __init__(self) -> None:
        """Nothing was late yet."""
        self._spans: list[Span] = []
        self._due = 0.0
        self._task: asyncio.Task[None] | None = None

    @property
    def held(self) -> bool:
        """Whether the process was held up in the block."""
        return bool(self.spans)

    @property
    def spans(self) -> tuple[Span, ...]:
        """From when to when it was held up so far, by `time.perf_counter`."""
        if self._task is not None:
            self._judge()
        return joined(self._spans)

    def seconds(self, begin: float, end: float, margin: float = 0.0) -> float:
        """How long it was held up around a stretch of time, by `time.perf_counter`; 0 when it was not.

        Args:
            begin: of the stretch.
            end: of it.
            margin: seconds by which a span may lie outside, since what it spoiled shows afterwards.
        """
        return length(near(begin - margin, end + margin, self.spans))

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
            self._task = None

    async def _look(self) -> None:
        while True:
            self._due = time.perf_counter() + TICK
            await asyncio.sleep(TICK)
            self._judge()

    def _judge(self) -> None:
        now = time.perf_counter()
        if now - self._due > HELD:
            self._spans.append((self._due - TICK, now))
            self._due = now + TICK
