"""SIGTERM and SIGHUP end a run the way Ctrl-C does: by an exception that lets everything be taken down."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_NAMES = ("SIGTERM", "SIGHUP")
_before: dict[int, Any] = {}
_depth = 0
_noted: list[str] | None = None


class Interrupted(KeyboardInterrupt):
    """The run was told to end, by a signal other than Ctrl-C. A second signal hurries the taking down."""


@contextlib.contextmanager
def ending_signals() -> Iterator[None]:
    """Raise Interrupted on SIGTERM and SIGHUP while inside. May be nested, and left in any order.

    A signal that is ignored stays ignored: `nohup pytest` survives its terminal. Outside of the main thread,
    where Python allows no handlers, nothing changes.
    """
    global _depth  # noqa: PLW0603 - handlers belong to the process
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if _depth == 0:
        _install()
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0:
            _restore()


@contextlib.contextmanager
def noting() -> Iterator[list[str]]:
    """While inside, the first signal is written down in the list and raises nothing; a second one raises."""
    global _noted  # noqa: PLW0603 - handlers belong to the process
    before, _noted = _noted, []
    try:
        yield _noted
    finally:
        _noted = before


def _install() -> None:
    for name in _NAMES:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            _before[number] = signal.signal(number, _raise)


def _restore() -> None:
    for number, handler in _before.items():
        signal.signal(number, handler if handler is not None else signal.SIG_DFL)
    _before.clear()


def _raise(number: int, _frame: FrameType | None) -> None:
    if _noted is not None and not _noted:
        _noted.append(signal.Signals(number).name)
        return
    raise Interrupted(signal.Signals(number).name)
