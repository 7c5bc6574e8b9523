"""A server's log as it arrives: bytes in, (time of arrival, line) out, readable while it grows."""

from __future__ import annotations

import codecs
import re
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
_ENDS = re.compile(r"(\r\n|\n|\r)")
_LONGEST = 16_384
_SHORTEST_SECRET = 4


class LogLines:
    """Lines of one server. A progress bar that redraws itself with carriage returns gives a line a second.

    Args:
        secrets: texts that are replaced by `***`.
        now: wall clock, seconds.
    """

    def __init__(self, secrets: Iterable[str] = (), now: Callable[[], float] = time.time) -> None:
        """An empty log."""
        self._lines: list[tuple[float, str]] = []
        self._secrets: list[str] = []
        self._now = now
        self._rest, self._redrawn = "", 0.0
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._lock = threading.Lock()
        self.hide(secrets)

    def hide(self, secrets: Iterable[str]) -> None:
        """Replace these texts by `***` from now on."""
        known = {*self._secrets, *(secret for secret in secrets if len(secret) >= _SHORTEST_SECRET)}
        self._secrets = sorted(known, key=len, reverse=True)

    def __len__(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    def feed(self, data: bytes) -> None:
        """Take what came from the server; a line counts once its end has come."""
        with self._lock:
            parts = _ENDS.split(self._rest + self._decode(data))
            # a carriage return at the very end may be half of a "\r\n"
            self._rest = parts.pop()
            if not self._rest and parts and parts[-1] == "\r":
                self._rest = parts.pop(-2) + parts.pop()
            for text, end in zip(parts[::2], parts[1::2], strict=True):
                self._keep(text, redrawn=end == "\r")

    def say(self, line: str) -> None:
        """Add a line of our own."""
        with self._lock:
            self._keep(line, redrawn=False)

    def close(self) -> None:
        """Keep what came without a line end."""
        with self._lock:
            rest, self._rest = self._rest, ""
            self._keep(rest, redrawn=False)

    def since(self, after: int = 0) -> list[tuple[float, str]]:
        """Lines from number `after` on, each with the wall-clock second of its arrival."""
        return self._lines[after:]

    def _keep(self, text: str, *, redrawn: bool) -> None:
        text = _COLOUR.sub("", text).rstrip()
        now = self._now()
        if not text or (redrawn and now - self._redrawn < 1):
            return
        if redrawn:
            self._redrawn = now
        for secret in self._secrets:
            text = text.replace(secret, "***")
        self._lines.append((now, text[:_LONGEST]))
