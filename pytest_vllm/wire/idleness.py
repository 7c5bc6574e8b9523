"""When a server has nothing left to do: the one judgement, for whoever scrapes and waits.

Idle: nothing running, nothing waiting, and either exactly the tokens counted that were handed out, or two
scrapes that agree in every count. vLLM counts a request right after it hands out its last token, so a
scrape that comes back at once may still miss it. Only looks and remembers; scraping is the caller's.
"""

from __future__ import annotations

from pytest_vllm.wire.glance import glance
from pytest_vllm.wire.looking import Looking

_BUSY = ("vllm:num_requests_running", "vllm:num_requests_waiting")
_GENERATED = "vllm:generation_tokens_total"
_COUNTS = ("_total", "_count", "_sum")
#: Seconds of the grace that one look uses up at most: a client that was held up has not looked meanwhile.
LOOK = 0.2


class Idleness:
    """Judges one scrape after the other.

    Args:
        before: an earlier scrape; None: there is nothing to compare, and `tokens` do not matter.
        tokens: how many more than in `before` must be counted.
        grace: seconds of idleness in which such tokens must show up, looked at every `LOOK` seconds at least;
            then it is idle all the same.
    """

    def __init__(self, before: str | None = None, tokens: int = 0, grace: float = 1.0) -> None:
        """Nothing is seen yet."""
        self._before = None if before is None else _generated(glance(before, (_GENERATED,)))
        self._tokens, self._grace = tokens, grace
        self._last: dict[str, list[float]] | None = None
        self._looking = Looking(LOOK)
        #: When a scrape first showed nothing running and nothing waiting; None before that.
        self.emptied: float | None = None
        #: Whether the scrape was vLLM's: of others nobody can say.
        self.known = False
        #: Whether the latest scrape showed idleness, and only tokens are missing.
        self.quiet = False
        #: Whether the tokens that were asked for have shown up.
        self.counted = False

    def settled(self, text: str, now: float) -> bool:
        """Whether the server was idle at this scrape.

        Args:
            text: the scrape.
            now: its moment, on any clock that runs evenly.
        """
        values = glance(text)
        self.known = bool(values)
        busy = sum(sum(values.get(name, ())) for name in _BUSY)
        if not busy and self.emptied is None:
            self.emptied = now
        if not self.known:
            return False
        counts = {name: found for name, found in values.items() if name.endswith(_COUNTS)}
        grown = self._tokens if self._before is None else _generated(values) - self._before
        sure = self._before is not None and grown == self._tokens > 0
        steady, self._last = counts == self._last, counts
        self.quiet = not busy and (sure or steady)
        if not self.quiet:
            return False
        waited = self._looking.at(now)
        self.counted = grown >= self._tokens
        return self.counted or waited >= self._grace


def _generated(values: dict[str, list[float]]) -> float:
    return sum(values.get(_GENERATED, ()))
