"""When the driver says that something came: the kernel's moment where there is one, and how late it read."""

from __future__ import annotations

import threading
import time
from statistics import median
from typing import TYPE_CHECKING

import pytest

from tests.unit.measure.peer import CHUNKED, PATIENCE, Line

if TYPE_CHECKING:
    import socket

    from pytest_vllm.measure.driver import Call

#: Seconds for which the driver is busy with something else.
BUSY = 0.08
#: By how much two readings of the clocks may differ that the kernel's times are put beside ours with.
CLOCKS = 0.002


def busy() -> None:
    """Compute, as a client does that has too much to do."""
    until = time.perf_counter() + BUSY
    while time.perf_counter() < until:
        pass


def stamping(line: Line, call: Call, peer: socket.socket) -> None:
    """Wait until the kernel takes times: it begins a moment after the first socket asked for them."""
    deadline = time.perf_counter() + PATIENCE
    while line.driver.stamped and not (line.driver.lags and line.driver.lags[-1] > BUSY / 2):
        assert time.perf_counter() < deadline, "the kernel takes no times"
        peer.sendall(b"1\r\nx\r\n")
        busy()
        whole = call.size + 6
        line.until(lambda whole=whole: call.size == whole)  # type: ignore[misc]


def test_a_busy_driver_reads_late_and_knows_when_it_came() -> None:
    """The kernel took the time; one that takes none, as gVisor's, leaves the moment of the reading."""
    with Line() as line:
        call, peer = line.asked()
        line.tell(peer, call, CHUNKED)
        stamping(line, call, peer)
        count = len(call.pieces)
        before = time.perf_counter()
        peer.sendall(b"5\r\nhello\r\n")
        wrote = time.perf_counter()
        busy()
        line.until(lambda: len(call.pieces) > count)
        came, late, read = call.times[-1], line.driver.lags[-1], time.perf_counter()

        if line.driver.stamped:
            assert before - CLOCKS <= came <= wrote + CLOCKS
            assert BUSY - CLOCKS <= late <= read - before + CLOCKS
        else:
            assert wrote + BUSY <= came <= read


def test_without_the_kernel_s_times_it_knows_how_late_it_may_be() -> None:
    """What waited for it came at some time since it looked last."""
    with Line(stamps=False) as line:
        call, peer = line.asked()
        looked = time.perf_counter()
        line.tell(peer, call, CHUNKED)
        peer.sendall(b"5\r\nhello\r\n")
        wrote = time.perf_counter()
        busy()
        line.until(lambda: len(call.pieces) == 2)
        read = time.perf_counter()

        assert not line.driver.stamped
        assert wrote + BUSY <= call.times[-1] <= read
        assert BUSY <= line.driver.lags[-1] <= read - looked


@pytest.mark.parametrize("stamps", [True, False])
def test_what_a_driver_waits_for_is_not_late(stamps: bool) -> None:
    """Not by more than from its writing to its reading, however long the driver waited before.

    Unless it came between two looks: then at some time since the first of them, which a busy machine may
    stretch, but not in most of twenty.
    """
    with Line(stamps=stamps) as line:
        call, peer = line.asked()
        line.tell(peer, call, CHUNKED)
        beyond = []
        for _ in range(20):
            wrote: list[float] = []

            def later(wrote: list[float] = wrote) -> None:
                wrote.append(time.perf_counter())
                peer.sendall(b"1\r\nx\r\n")

            timer = threading.Timer(0.02, later)
            timer.start()
            whole = call.size + 6
            line.until(lambda whole=whole: call.size == whole)  # type: ignore[misc]
            read = time.perf_counter()
            timer.join()
            assert line.driver.lags[-1] >= 0
            beyond.append(line.driver.lags[-1] - (read - wrote[0]))

        assert median(beyond) <= CLOCKS


def test_a_clock_that_was_set_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """By more than a millisecond: the kernel's times lie on another axis then."""
    with Line() as line:
        line.driver.step(0.0)
        assert not line.driver.stepped
        real, later = time.time_ns, time.perf_counter
        monkeypatch.setattr(time, "time_ns", lambda: real() + 50_000_000)
        monkeypatch.setattr(time, "perf_counter", lambda: later() + 2)  # the next look at the clocks is due
        line.driver.step(0.0)

        assert line.driver.stepped


def test_every_read_is_counted() -> None:
    with Line() as line:
        call, peer = line.asked()
        line.tell(peer, call, CHUNKED, b"5\r\nhello\r\n", b"0\r\n\r\n")

        assert line.driver.reads == len(call.pieces) == len(line.driver.lags) == 3
        assert call.size == sum(map(len, call.pieces))
