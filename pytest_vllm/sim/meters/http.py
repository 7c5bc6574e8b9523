"""The web layer's own metrics, as prometheus-fastapi-instrumentator exports them."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from pytest_vllm.sim.engine.stats import Histogram

if TYPE_CHECKING:
    from pytest_vllm.sim.http.server import Call

UNCOUNTED = ("/metrics", "/health", "/load", "/ping", "/version", "/server_info")
FINE = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 7.5, 10.0,
    30.0, 60.0,
)  # fmt: skip
COARSE = (0.1, 0.5, 1.0)


class HttpMeters:
    """Requests by handler, method and status class; sizes and durations."""

    def __init__(self, started: float) -> None:
        """Nothing counted; `started` is the virtual time since the epoch."""
        self.started = started
        self.requests: Counter[tuple[str, str, str]] = Counter()
        self.received: dict[str, list[float]] = {}
        self.sent: dict[str, list[float]] = {}
        self.fine = Histogram(FINE)
        self.coarse: dict[tuple[str, str], Histogram] = {}

    def count(self, call: Call, handler: str, status: int, sent: int) -> None:
        """A call was answered."""
        if handler in UNCOUNTED or call.request.method == "OPTIONS":
            return
        method = call.request.method
        name = handler if status != 404 or handler.startswith("/v1/") else "none"
        seconds = time.monotonic() - call.began
        self.requests[(name, method, f"{status // 100}xx")] += 1
        for sizes, size in ((self.received, len(call.request.body)), (self.sent, sent)):
            entry = sizes.setdefault(name, [0, 0.0])
            entry[0] += 1
            entry[1] += size
        self.fine.observe(seconds)
        self.coarse.setdefault((name, method), Histogram(COARSE)).observe(seconds)
