"""Virtual time: the simulated server's own, `speed` times as fast as the wall's."""

from __future__ import annotations

import time


class Clock:
    """Maps real seconds to virtual ones. Everything the server tells of time is virtual."""

    def __init__(self, speed: float = 1.0) -> None:
        """Start now; virtual time begins at the wall's present."""
        self.speed = speed
        self._real = time.monotonic()
        self._wall = time.time()

    def now(self) -> float:
        """Virtual seconds since the start."""
        return (time.monotonic() - self._real) * self.speed

    def wall(self) -> float:
        """Virtual seconds since the epoch."""
        return self._wall + self.now()

    def real(self, virtual: float) -> float:
        """The monotonic real time at which a virtual moment comes."""
        return self._real + virtual / self.speed

    def skip(self, virtual: float) -> None:
        """Let virtual time jump ahead, as when a model that takes minutes to load is loaded at once."""
        self._real -= virtual / self.speed
