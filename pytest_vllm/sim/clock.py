"""Virtual time: the simulated server's own, `speed` times as fast as the wall's."""

from __future__ import annotations

import time


class Clock:
    """Maps real seconds to virtual ones. Durations that the server tells are virtual; dates are the wall's.

    A start that would take minutes is shown at once: `ahead` seconds of it are still to come, and log lines
    carry the dates that make it end now.
    """

    def __init__(self, speed: float = 1.0, ahead: float = 0.0) -> None:
        """Start now."""
        self.speed = speed
        self._real = time.monotonic()
        self._ahead = ahead

    def now(self) -> float:
        """Virtual seconds since the start."""
        return (time.monotonic() - self._real) * self.speed

    def wall(self) -> float:
        """Seconds since the epoch."""
        return time.time() - self._ahead

    def real(self, virtual: float) -> float:
        """The monotonic real time at which a virtual moment comes."""
        return self._real + virtual / self.speed

    def skip(self, seconds: float) -> None:
        """So much of the start has passed."""
        self._ahead = max(0.0, self._ahead - seconds)
