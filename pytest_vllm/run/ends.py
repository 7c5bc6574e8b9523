"""Which kinds of answers end: what begins and never ends is not waited for by the hundred."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_vllm.run.order import kind_of
from pytest_vllm.wire.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.wire.recording import Recording, Request

OK = 200
#: So many answers of a kind that do not end, with none that does, and no more of it are asked for.
ENDLESS = 3


class Ends:
    """What is known of the ends of a server's answers, by route and whether they stream.

    Args:
        total: how many exchanges there are: one answer that ends outweighs all that do not.
    """

    def __init__(self, total: int) -> None:
        """Nothing was asked yet."""
        self._total = total
        self._unended: Counter[tuple[str, bool]] = Counter()
        self._open: defaultdict[tuple[str, bool], set[asyncio.Task[object]]] = defaultdict(set)

    @contextmanager
    def awaited(self, request: Request) -> Iterator[None]:
        """While an answer is waited for: the task is cancelled where its kind is given up."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - exchanges are tasks
        self._open[kind_of(request)].add(task)
        try:
            yield
        finally:
            self._open[kind_of(request)].discard(task)

    def saw(self, recording: Recording) -> None:
        """Count an answer that began and did not end; one that did shows that its kind does."""
        kind, failure = kind_of(recording.request), recording.failure
        if recording.status != OK or recording.aborted:
            return
        if failure is None:
            self._unended[kind] = -self._total
        elif failure is Failure.PROTOCOL or (failure.slow and recording.request.timeout is None):
            self._unended[kind] += 1
            for task in self._open[kind] if self._unended[kind] == ENDLESS else ():
                task.cancel()

    def doubted(self, request: Request) -> bool:
        """Whether no answer of this kind has ended yet, and one did not."""
        return self._unended[kind_of(request)] > 0

    def why_not(self, request: Request) -> str:
        """Why no more answers of a kind are waited for; empty while they are."""
        kind = kind_of(request)
        return self._words(*kind) if self._unended[kind] >= ENDLESS else ""

    def streams(self) -> tuple[str, ...]:
        """Routes of which no stream ends, in words."""
        found = sorted(kind for kind, count in self._unended.items() if kind[1] and count >= ENDLESS)
        return tuple(self._words(*kind) for kind in found)

    def _words(self, path: str, streams: bool) -> str:
        which = f"{self._unended[path, streams]} {'streams' if streams else 'answers'}"
        return f"{which} of {path} began and did not end as they should, and none did"
