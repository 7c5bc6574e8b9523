"""Identifiers: unlike each other, but the same in every run with the same seed."""

from __future__ import annotations

import hashlib
from itertools import count


class Ids:
    """A counter turned into hexadecimal text."""

    def __init__(self, seed: int, replica: str = "") -> None:
        """Ids depend on the seed, on how many were made before, and on which of several servers this is."""
        self._seed = f"{seed}{replica}"
        self._numbers = count(1)

    def hex(self, size: int = 16) -> str:
        """`size` hexadecimal digits."""
        text = f"{self._seed}/{next(self._numbers)}"
        return hashlib.sha256(text.encode()).hexdigest()[:size]
