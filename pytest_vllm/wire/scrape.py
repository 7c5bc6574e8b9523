"""Scrapes `/metrics` around an exchange, once the server has nothing left to do."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from pytest_vllm.wire.again import TURNED_AWAY, again
from pytest_vllm.wire.idleness import Idleness
from pytest_vllm.wire.recording import Request

if TYPE_CHECKING:
    from pytest_vllm.wire.client import WireClient

#: Seconds before a server is asked again that a limit of rates in front of it keeps from answering.
WAITS = (0.3, 1.0, 3.0)


class Scraper:
    """Waits for an idle server and gives its `/metrics` text.

    What idle means: `idleness.py`.

    Args:
        client: what sends the scrapes.
        deadline: seconds to wait for idleness; a fifth of it once it was exceeded.
        pause: seconds between two scrapes.
        grace: seconds in which tokens that an answer counted must show up in the metrics.
    """

    def __init__(
        self, client: WireClient, *, deadline: float = 5.0, pause: float = 0.03, grace: float = 1.0
    ) -> None:
        """Nothing is scraped yet."""
        self._client = client
        self._deadline, self._pause, self._grace = deadline, pause, grace
        self._waits: tuple[float, ...] = WAITS
        self.exists = True
        self.settled = False

    async def scrape(self) -> str | None:
        """The text of `/metrics` now; None when the server has none."""
        request = Request("GET", "/metrics", timeout=10.0)
        # what stands in front may have let enough pass for now
        recording = await again(
            lambda: self._client.send("metrics", request), lambda one: one.status in TURNED_AWAY, self._waits
        )
        if recording.status in TURNED_AWAY:
            self._waits = ()
        self.exists = recording.status == 200
        return recording.text if self.exists else None

    async def when_idle(self, before: str | None = None, tokens: int = 0) -> str | None:
        """The text of `/metrics` once the server is idle and has counted `tokens` more than in `before`.

        Without `before` there is nothing to compare, and `tokens` do not matter. After the deadline it is the
        latest text, whatever that says; `settled` tells which it was.
        """
        began = time.perf_counter()
        idleness = Idleness(before, tokens, self._grace)
        self.settled = False
        while (text := await self.scrape()) is not None:
            now = time.perf_counter()
            if idleness.settled(text, now):
                self._grace = self._grace if idleness.counted else 0.0
                self.settled = True
                return text
            if not idleness.known:
                return text
            if not idleness.quiet and now - began > self._deadline:
                self._deadline /= 5
                return text
            await asyncio.sleep(self._pause)
        return None
