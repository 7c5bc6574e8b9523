"""Threads that write while the event loop reads: a slow disk or a blocked terminal must not hold it up."""

from __future__ import annotations

import asyncio
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


class Scribe:
    """Does what it is given in order, in a thread of its own; all of it is done when its block is left.

    What it is given is in memory anyway, so that its queue needs no bound. The first error ends its work, and
    is raised where the next thing is given, or at the end of the block.
    """

    def __init__(self) -> None:
        """Nothing is to be written yet."""
        self._work: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._write, name="pytest-vllm scribe", daemon=True)

    async def __aenter__(self) -> Self:
        """Begin to write."""
        self._thread.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until everything is written. Raises what writing raised, unless something else went wrong."""
        self._work.put(None)
        await asyncio.to_thread(self._thread.join)
        if error is None:
            self._raise()

    def give(self, do: Callable[[], object]) -> None:
        """Let this be done after everything before it. Raises what an earlier one raised."""
        self._raise()
        self._work.put(do)

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        while (do := self._work.get()) is not None:
            if self._error is not None:
                continue
            try:
                do()
            except BaseException as error:  # noqa: BLE001 - raised by the thread that gave it
                self._error = error


class Latest:
    """Calls a function with what it was given last, in a thread of its own: what is overtaken is left out.

    For progress, of which only the present state matters. The last state is passed on in any case, by the end
    of the block, unless the function is stuck for longer than `patience`.
    """

    def __init__(self, show: Callable[..., object], patience: float = 5.0) -> None:
        """Nothing is shown yet.

        Args:
            show: called with what `__call__` was given.
            patience: seconds to wait at the end for a function that is stuck.
        """
        self._show, self._patience = show, patience
        self._news = threading.Condition()
        self._next: tuple[Any, ...] | None = None
        self._over = False
        self._thread = threading.Thread(target=self._pass_on, name="pytest-vllm progress", daemon=True)

    def __enter__(self) -> Self:
        """Begin to show."""
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Show the last state."""
        with self._news:
            self._over = True
            self._news.notify()
        self._thread.join(self._patience)

    def __call__(self, *state: Any) -> None:
        """Show this as soon as what is being shown is done."""
        with self._news:
            self._next = state
            self._news.notify()

    def _pass_on(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._next is not None or self._over)
                state, self._next = self._next, None
            if state is None:
                return
            try:
                self._show(*state)
            except (OSError, ValueError):  # a closed terminal: whoever prints the verdict meets it too
                return
