"""What Locust's master and its workers share: the user that it spreads, and how lines are read beside it.

Importing Locust patches the standard library's sockets and locks, unless it is told not to by UNPATCHED: our
driver and its times need the real ones.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar

from gevent.monkey import is_module_patched
from gevent.socket import wait_read
from locust import User, constant, task

from pytest_vllm.measure.swarm.crew import UNPATCHED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

if is_module_patched("socket"):
    raise ImportError(f"sockets are gevent's, so times would be too: start it with {UNPATCHED} set")

#: The type of all our messages between master and workers.
MESSAGE = "vllm"


class Stream(User):
    """One stream of a load after the other: a request, and the next one once it has ended."""

    wait_time = constant(0)
    #: Waits for the next load, and performs a stream of it; a worker sets it.
    turn: ClassVar[Callable[[], None]]

    @task
    def ask(self) -> None:
        """A stream of a load."""
        Stream.turn()


def lines_of(pipe: int) -> Iterator[bytes]:
    """Lines of a pipe until it ends, while other greenlets go on."""
    rest = b""
    while True:
        wait_read(pipe)
        data = os.read(pipe, 2**20)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        yield from lines
