"""Scrapes `/metrics` around an exchange, once the server has nothing left to do."""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING

from pytest_vllm.wire.recording import Request

if TYPE_CHECKING:
    from pytest_vllm.wire.client import WireClient

_BUSY = re.compile(r"^vllm:num_requests_(?:running|waiting)(?:\{.*\})? +(\S+)", re.MULTILINE)
_GENERATED = re.compile(r"^vllm:generation_tokens_total(?:\{.*\})? +(\S+)", re.MULTILINE)
_COUNTS = re.compile(r"^vllm:\w+_(?:total|count|sum)(?:\{.*\})? +(\S+)", re.MULTILINE)


class Scraper:
    """Waits for an idle server and gives its `/metrics` text.

    Idle: nothing running, nothing waiting, and either exactly the tokens counted that were handed out, or two
    scrapes that agree in every count. vLLM counts a request right after it hands out its last token, so a
    scrape that comes back at once may still miss it.

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
        self.exists = True
        self.settled = False

    async def scrape(self) -> str | None:
        """The text of `/metrics` now; None when the server has none."""
        recording = await self._client.send("metrics", Request("GET", "/metrics", timeout=10.0))
        self.exists = recording.status == 200
        return recording.text if self.exists else None

    async def when_idle(self, before: str | None = None, tokens: int = 0) -> str | None:
        """The text of `/metrics` once the server is idle and has counted `tokens` more than in `before`.

        Without `before` there is nothing to compare, and `tokens` do not matter. After the deadline it is the
        latest text, whatever that says; `settled` tells which it was.
        """
        began = time.perf_counter()
        idle_since = None
        last = None
        self.settled = False
        while (text := await self.scrape()) is not None:
            counts = _counts(text)
            if counts is None:
                return text
            now = time.perf_counter()
            grown = tokens if before is None else _grown(before, text)
            sure = before is not None and grown == tokens > 0
            if not counts[0] and (sure or counts == last):
                idle_since = idle_since or now
                counted = grown >= tokens
                if counted or now - idle_since >= self._grace:
                    self._grace = self._grace if counted else 0.0
                    self.settled = True
                    return text
            elif now - began > self._deadline:
                self._deadline /= 5
                return text
            last = counts
            await asyncio.sleep(self._pause)
        return None


def _counts(text: str) -> tuple[float, list[str]] | None:
    """Requests in the engine, and every count of vLLM's; None when this is no Prometheus text.

    Read with patterns: a full parse of vLLM's metrics takes 15 ms, several times per exchange.
    """
    try:
        busy = sum(float(value) for value in _BUSY.findall(text))
    except ValueError:
        return None
    return (busy, _COUNTS.findall(text)) if "vllm:" in text else None


def _grown(before: str, after: str) -> float:
    try:
        return sum(map(float, _GENERATED.findall(after))) - sum(map(float, _GENERATED.findall(before)))
    except ValueError:
        return 0.0
