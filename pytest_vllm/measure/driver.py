"""The measuring driver: many streams of HTTP/1.1 over one selector, bytes and times kept, nothing decoded.

A read costs one system call and two list entries; what the bytes mean is worked out after the run
(`wirebytes.py`), so the client does not slow down what it measures. Where the kernel tells when bytes came
in (Linux, plain TCP), that moment counts and not the later one at which this process got round to reading
them: a busy client then measures late but not wrong, and `lags` tells by how much it was late.

All times are seconds of `time.perf_counter`.
"""

from __future__ import annotations

import os
import selectors
import socket
import ssl
import struct
import time
from array import array
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_vllm.measure.host import Host, allow
from pytest_vllm.measure.wirebytes import Head, complete, head_of
from pytest_vllm.wire.allowance import EACH
from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.framing import FramingError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.measure.host import Address
    from pytest_vllm.wire.policy import Access

READ = 65_536
#: An idle connection older than this is not used again: uvicorn closes it after 5 s.
IDLE = 3.0
#: A body in chunks ends with these, also after trailers; three line ends are the content's own blank line.
_BLANK, _CONTENT_S = b"\r\n\r\n", b"\r\n\r\n\r\n"
#: Seconds by which a look may come too late; after more the process was held up.
HELD = 0.25
_TIMESPEC = struct.Struct("qq")
#: Failures of a connection that the other side has ended.
_CLOSED = frozenset({Failure.RESET, Failure.TRUNCATED})
_LATER = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


@dataclass(eq=False)
class Call:
    """One request and what came back, as it came.

    Args:
        message: head and body as they go out.
        done: called once when it has ended, however.
        intended: when it was meant to be sent.
        label: whatever the caller wants to find again.
        sent: when its first byte went out; 0 before that.
        pieces: bytes, one entry per read.
        times: when each piece came in.
        ended: when it was over; 0 before that.
        error: why it has no whole response; empty when it has.
        failure: the same as a kind; None when it has.
        again: whether it was sent a second time: its kept connection was closed while it was on its way.
        most: bytes that the response may have; one that goes on is broken off, and but its beginning dropped.
    """

    message: bytes
    done: Callable[[Call], None]
    intended: float
    label: object = None
    sent: float = 0.0
    pieces: list[bytes] = field(default_factory=list)
    times: array[float] = field(default_factory=lambda: array("d"))
    ended: float = 0.0
    error: str = ""
    failure: Failure | None = None
    head: Head | None = None
    size: int = 0
    again: bool = False
    most: int = EACH


class Connection:
    """A connection, and the call that it carries."""

    def __init__(self, sock: socket.socket, address: Address | None) -> None:
        """Not connected yet."""
        self.socket, self.address = sock, address
        self.call: Call | None = None
        self.rest = memoryview(b"")
        self.ready = False
        self.used = 0.0
        self.fresh = True
        self.refused = ""


class Driver:
    """Sends calls and collects what comes back.

    Args:
        url: the server's base URL.
        stamps: whether to use the kernel's times where there are some.
        access: what was said about the way to it.
    """

    def __init__(self, url: str, *, stamps: bool = True, access: Access | None = None) -> None:
        """Nothing is connected. Raises OSError for a host without an address, ValueError for a bad URL."""
        self._host = Host(url, stamps=stamps, access=access)
        self.route = self._host.route
        self._selector = selectors.DefaultSelector()
        self._idle: deque[Connection] = deque()
        self._busy: set[Connection] = set()
        self._shift = 0.0
        self._shifted = -1.0
        self._woke = self._since = time.perf_counter()
        #: Seconds between a piece's arrival and its reading, where the kernel tells; else between two turns.
        self.lags = array("f")
        self.reads = 0
        self.peak = 0
        self.stepped = False
        #: Calls that were sent a second time.
        self.resent = 0
        #: From when to when this process did not look at its connections, though it was to.
        self.held: list[tuple[float, float]] = []

    @property
    def stamped(self) -> bool:
        """Whether times are the kernel's."""
        return self._host.stamps is not None

    @property
    def active(self) -> int:
        """Calls in flight."""
        return len(self._busy)

    def fileno(self) -> int:
        """What becomes readable when a connection has something; -1 where the system has nothing like it."""
        found: int = getattr(self._selector, "fileno", lambda: -1)()
        return found

    @property
    def _name(self) -> str:
        """What connections lead to: the proxy, where there is one."""
        return f"the proxy {self.route.proxy}" if self.route.proxy else self.route.where

    def open(self, count: int) -> None:
        """Connect so many connections beforehand. Raises OSError when the server cannot be reached."""
        wanted = count - len(self._idle)
        allow(count + 64)
        fresh = [self._connect() for _ in range(max(0, wanted))]
        deadline = time.perf_counter() + 10.0
        while any(not one.ready for one in fresh):
            self._poll(0.1)
            if refused := next((one.refused for one in fresh if one.refused), ""):
                raise ConnectionError(f"{self._name} {refused}")
            if time.perf_counter() > deadline:
                raise TimeoutError(f"{self._name} takes no connections: none within 10 s")

    def submit(self, call: Call) -> Call:
        """Send a call, on an idle connection if there is one."""
        connection = self._take()
        connection.call = call
        connection.rest = memoryview(call.message)
        self._busy.add(connection)
        self.peak = max(self.peak, len(self._busy))
        if connection.ready:
            self._send(connection)
        return call

    def turn(self, until: float) -> None:
        """Serve the connections until a moment; a last look is taken even when it has passed."""
        while True:
            self.step(max(0.0, until - time.perf_counter()))
            if time.perf_counter() >= until:
                return

    def step(self, longest: float) -> None:
        """Serve the connections once, waiting for at most so many seconds."""
        now = time.perf_counter()
        if now - self._shifted > 1.0:
            self._align(now)
        self._poll(longest)

    def cancel(self, older_than: float = 0.0, why: str = "given up") -> int:
        """Give up calls in flight that were sent more than so many seconds ago. How many."""
        now = time.perf_counter()
        late = [c for c in self._busy if c.call and now - (c.call.sent or c.call.intended) >= older_than]
        for connection in late:
            self._end(connection, Failure.GIVEN_UP, why)
        return len(late)

    def close(self) -> None:
        """Close every connection; calls in flight are given up."""
        self.cancel()
        for connection in list(self._idle):
            self._drop(connection)
        self._selector.close()

    def _take(self) -> Connection:
        now = time.perf_counter()
        while self._idle:
            connection = self._idle.pop()
            if connection.fresh or now - connection.used < IDLE:
                return connection
            self._drop(connection)
        connection = self._connect()
        self._idle.remove(connection)
        return connection

    def _connect(self) -> Connection:
        connection = Connection(*self._host.reach())
        self._selector.register(connection.socket, selectors.EVENT_WRITE, connection)
        connection.used = time.perf_counter()
        self._idle.append(connection)
        return connection

    def _elsewhere(self, connection: Connection) -> bool:
        """Go on at the host's next address with a connection that was refused; whether there is one."""
        if not self._host.without(connection.address):
            return False
        self._selector.unregister(connection.socket)
        connection.socket.close()
        try:
            connection.socket, connection.address = self._host.reach()
        except OSError:
            return False
        self._selector.register(connection.socket, selectors.EVENT_WRITE, connection)
        return True

    def _poll(self, timeout: float) -> None:
        began = time.perf_counter()
        if began - self._woke > HELD:
            self.held.append((self._woke, began))
        ready = self._selector.select(0)
        at_once = bool(ready)
        if not at_once and timeout > 0:
            ready = self._selector.select(timeout)
        woke = time.perf_counter()
        if woke - began > timeout + HELD:
            self.held.append((began, woke))
        # what was there at once may have come at any time since the last look
        self._since, self._woke = self._woke if at_once else woke, woke
        for key, events in ready:
            connection = key.data
            if events & selectors.EVENT_WRITE:
                self._writable(connection)
            else:
                self._readable(connection)

    def _writable(self, connection: Connection) -> None:
        if not connection.ready:
            refused = connection.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if refused and self._elsewhere(connection):
                return
            if refused:
                connection.refused = f"takes no connections: {os.strerror(refused).lower()}"
                self._end(connection, Failure.NO_CONNECTION, connection.refused)
                return
            connection.ready = True
            connection.used = time.perf_counter()
            self._selector.modify(connection.socket, selectors.EVENT_READ, connection)
        if connection.call is not None:
            self._send(connection)

    def _send(self, connection: Connection) -> None:
        call = connection.call
        if call is None:
            return
        call.sent = call.sent or time.perf_counter()
        try:
            count = connection.socket.send(connection.rest)
        except _LATER:
            count = 0
        except OSError as error:
            self._end(connection, Failure.RESET, f"sending failed: {error}")
            return
        connection.rest = connection.rest[count:]
        events = selectors.EVENT_WRITE if connection.rest else selectors.EVENT_READ
        self._selector.modify(connection.socket, events, connection)

    def _readable(self, connection: Connection) -> None:
        try:
            if self._host.stamps is not None:
                data, told, _, _ = connection.socket.recvmsg(READ, 64)
            else:
                data, told = connection.socket.recv(READ), []
        except _LATER:
            return
        except OSError as error:
            self._end(connection, Failure.RESET, f"the connection broke: {error}")
            return
        at = time.perf_counter()
        if told:
            seconds, nanos = _TIMESPEC.unpack(told[0][2])
            read, at = at, min(at, seconds + nanos * 1e-9 - self._shift)
            self.lags.append(read - at)
        else:
            self.lags.append(at - self._since)
        call = connection.call
        if call is None or not data:
            closed = "the connection was closed before the response was whole"
            self._end(connection, Failure.TRUNCATED, closed)
            return
        self.reads += 1
        call.pieces.append(data)
        call.times.append(at)
        call.size += len(data)
        if call.size > call.most:
            del call.pieces[1:], call.times[1:]
            excess = f"the response is longer than {call.most // 1024} KiB and was broken off there"
            self._end(connection, Failure.PROTOCOL, excess)
            return
        if call.head is None:
            call.head = head_of(call.pieces)
        if call.head is not None and self._may_be_over(call.head, call, data):
            self._whole(connection, call, at)
        if self._host.tls is not None and connection.call is call and connection.socket.pending():  # type: ignore[attr-defined]
            self._readable(connection)

    @staticmethod
    def _may_be_over(head: Head, call: Call, data: bytes) -> bool:
        """A cheap look at the last bytes, which is right whenever it says no."""
        if head.chunked:
            return len(data) < 5 or (data.endswith(_BLANK) and not data.endswith(_CONTENT_S))
        return head.length is not None and call.size >= head.ends + head.length

    def _whole(self, connection: Connection, call: Call, at: float) -> None:
        """The response may be complete; if it is, the connection is free again."""
        try:
            if call.head is None or not complete(call.head, call.pieces):
                return
        except FramingError as error:
            self._end(connection, Failure.PROTOCOL, str(error))
            return
        connection.call = None
        connection.used, connection.fresh = at, False
        self._busy.discard(connection)
        if call.head.closes:
            self._drop(connection)
        else:
            self._idle.append(connection)
        call.ended = at
        call.done(call)

    def _end(self, connection: Connection, failure: Failure, error: str) -> None:
        call, connection.call = connection.call, None
        self._busy.discard(connection)
        self._drop(connection)
        if call is not None and failure in _CLOSED and self._crossed(connection, call):
            return
        if call is not None:
            by_close = call.head is not None and not call.head.chunked and call.head.length is None
            if not (by_close and failure is Failure.TRUNCATED):
                call.failure, call.error = failure, error
            call.ended = time.perf_counter()
            call.done(call)

    def _crossed(self, connection: Connection, call: Call) -> bool:
        """Send a call once more whose kept connection was closed as it went out; whether that was so.

        A server that stood still for longer than it keeps idle connections closes them before it looks for
        what has come on them. RFC 9112, 9.3.1, has clients send such a request again, and they do.
        """
        if connection.fresh or call.pieces or call.again:
            return False
        call.again = True
        try:
            other = self._connect()
        except OSError:
            return False
        self.resent += 1
        self._idle.remove(other)
        other.call, other.rest = call, memoryview(call.message)
        self._busy.add(other)
        return True

    def _drop(self, connection: Connection) -> None:
        if connection in self._idle:
            self._idle.remove(connection)
        try:
            self._selector.unregister(connection.socket)
        except (KeyError, ValueError):
            return
        connection.socket.close()

    def _align(self, now: float) -> None:
        """Where perf_counter stands against the clock of the kernel's stamps; a step of that is told."""
        pairs = [(time.perf_counter(), time.time_ns() * 1e-9, time.perf_counter()) for _ in range(5)]
        before, wall, after = min(pairs, key=lambda three: three[2] - three[0])
        shift = wall - (before + after) / 2
        if self._shifted >= 0 and abs(shift - self._shift) > 0.001:
            self.stepped = True
        self._shift, self._shifted = shift, now
