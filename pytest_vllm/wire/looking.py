"""How long something was looked at: a process that was held up between two looks has not looked meanwhile."""

from __future__ import annotations


class Looking:
    """Adds up the time between looks.

    Args:
        most: seconds that the time between two looks counts, at most.
    """

    def __init__(self, most: float) -> None:
        """Nothing was looked at yet."""
        self._most = most
        self._last: float | None = None
        self.seconds = 0.0

    def at(self, now: float) -> float:
        """Take a look, on any clock that runs evenly. Returns the seconds of looking so far."""
        self.seconds += 0.0 if self._last is None else min(now - self._last, self._most)
        self._last = now
        return self.seconds
