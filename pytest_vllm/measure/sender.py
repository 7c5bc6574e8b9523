"""Sends the requests of a load, by the clock or as answers end, and makes records of what came back.

All of a load in one process, or the part of one process among several: `Part` says which.
"""

from __future__ import annotations

import time
from array import array
from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from pytest_vllm.measure.driver import Call
from pytest_vllm.measure.held import joined
from pytest_vllm.measure.samples import Sample, sample_of
from pytest_vllm.wire.allowance import EACH, LEAST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_vllm.measure.asking import Asking
    from pytest_vllm.measure.driver import Driver
    from pytest_vllm.measure.health import Doubt
    from pytest_vllm.measure.held import Span
    from pytest_vllm.measure.workload import Script, Workload

#: Connections that are opened before a load, at most.
CONNECTIONS = 1024
#: Answers of the load that are kept as text.
KEPT = 40
#: Bytes of responses that are kept unread, at most.
UNREAD = 16 * 2**20
#: Bytes that a response may have for each token that it was asked for; a chunk of a stream has about 250.
A_TOKEN = 4096
#: So many requests in a row that fail end the load.
HOPELESS = 50


@dataclass(frozen=True)
class Part:
    """What one process sends of a load.

    Args:
        streams: how many at a time (closed loop).
        before: streams of the processes before this one.
        all: streams of all of them.
        requests: no more than so many; None: without end.
    """

    streams: int
    before: int
    all: int
    requests: int | None

    @classmethod
    def whole(cls, workload: Workload) -> Part:
        """All of it."""
        return cls(workload.streams, 0, workload.streams, workload.requests)


@dataclass(frozen=True)
class Footprint:
    """What a client process itself did in the scored window.

    Args:
        who: the process; empty when there is one alone.
        cpu: seconds of processor time.
        reads: pieces of responses.
        lags: between arrival and reading of pieces, in seconds.
        stamped: whether arrivals are the kernel's times.
        stepped: whether the clock of those was set meanwhile.
        streams: that it was to have in flight.
        samples: records that it made.
        held: when it was held up, in the server's seconds from the start of the load.
    """

    cpu: float = 0.0
    reads: int = 0
    lags: Sequence[float] = ()
    stamped: bool = True
    stepped: bool = False
    who: str = ""
    streams: int = 0
    samples: int = 0
    held: Sequence[Span] = ()


@dataclass(eq=False)
class Sender:
    """Sends what one process has to send of a load. Moments are perf_counter's.

    Args:
        workload: what is done.
        driver: carries it.
        asking: makes the messages.
        script: what is asked.
        part: which of it; all unless told.
        kept: answers that are kept as text, at most.
    """

    workload: Workload
    driver: Driver
    asking: Asking
    script: Script
    part: Part
    kept: int = KEPT
    start: float = 0.0
    speed: float = 1.0
    sent: int = 0
    failed: int = 0
    samples: list[Sample] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Nothing is sent yet."""
        self.flying: set[Call] = set()
        self._ended: deque[Call] = deque()
        self._unread = 0
        self._accepting = True
        self._arrivals: Iterator[float] = iter(())
        self._next: float | None = None
        self._since = self._until = (0.0, 0, 0)

    @property
    def in_flight(self) -> int:
        """Requests that were sent and have not ended."""
        return len(self.flying)

    @property
    def begun(self) -> int:
        """Requests that have begun to be answered."""
        answering = sum(1 for call in self.flying if call.head and call.size > call.head.ends)
        return answering + self.sent - len(self.flying)

    @property
    def reads(self) -> int:
        """Pieces of responses so far."""
        return self.driver.reads

    @property
    def held(self) -> tuple[Span, ...]:
        """When this process was held up so far, in the server's seconds from the start of the load."""
        spans = ((begin - self.start, end - self.start) for begin, end in self.driver.held)
        return joined((begin * self.speed, end * self.speed) for begin, end in spans if end > 0)

    @property
    def stopped(self) -> bool:
        """Whether it was told to send no more."""
        return not self._accepting

    @property
    def hopeless(self) -> bool:
        """Whether so many in a row have failed that no more is sent."""
        return self.failed >= HOPELESS

    @property
    def finished(self) -> bool:
        """Whether nothing is in flight, and nothing will be: all is answered, or all arrivals have been."""
        to_come = self._next is not None if self.workload.open_loop else self.may_ask()
        return not self.flying and not to_come

    @property
    def due(self) -> float:
        """When the next arrival is; infinite when none is to come."""
        return inf if self._next is None else self.start + self._next / self.speed

    def begin(self, speed: float) -> float:
        """Begin now, with all streams at once. When that was."""
        self.begin_at(time.perf_counter(), speed)
        if not self.workload.open_loop:
            for number in range(self.part.streams):
                self.ask_first(number, self.ask_next)
        return self.start

    def begin_at(self, moment: float, speed: float) -> None:
        """The load begins at that moment; nothing is sent yet."""
        self.start, self.speed = moment, speed
        if self.workload.open_loop:
            self._arrivals = self.script.arrivals()
            self._next = next(self._arrivals, None) if self.may_ask() else None

    def serve(self, now: float) -> None:
        """Send what has arrived until now; make records when too much is unread."""
        while self.due <= now:
            self.ask(self.due)
            self._next = next(self._arrivals, None) if self.may_ask() else None
        if self._unread > UNREAD:
            self.read()

    def may_ask(self) -> bool:
        """Whether another request may be sent."""
        limit = self.part.requests
        return self._accepting and not self.hopeless and (limit is None or self.sent < limit)

    def ask_first(self, number: int, then: Callable[[Call], None]) -> None:
        """Send a stream's first request; those of many streams are shorter, so that their ends spread out."""
        self.ask(self.start, (self.part.before + number + 1) / self.part.all, then)

    def ask_next(self, call: Call) -> None:
        """Send what comes in the place of a request that has ended, if anything does."""
        if self.may_ask():
            self.ask(call.ended, then=self.ask_next)

    def ask(self, intended: float, share: float = 1.0, then: Callable[[Call], None] | None = None) -> None:
        """Send the next request.

        Args:
            intended: when it was meant to be sent.
            share: of the tokens that it would ask for.
            then: called once it has ended.
        """
        asked = self.script.next()
        output = asked.output
        if output is not None and share < 1:
            output = max(2, round(output * share))

        def over(call: Call) -> None:
            self._over(call)
            if then is not None:
                then(call)

        message = self.asking.load(asked, output)
        most = EACH if output is None else LEAST + A_TOKEN * output
        call = Call(message, over, intended, (asked.kind.name, output), most=most)
        self.sent += 1
        self.flying.add(call)
        self.driver.submit(call)

    def read(self, most: int | None = None) -> list[Sample]:
        """Make records of what has ended; its bytes are dropped. Those records; no more than `most`."""
        made: list[Sample] = []
        while self._ended and (most is None or len(made) < most):
            call = self._ended.popleft()
            self._unread -= call.size
            kind, asked = call.label if isinstance(call.label, tuple) else ("", None)
            texts = self.kept > 0 and len(self.samples) % 5 == 0
            self.kept -= texts
            sample = sample_of(call, kind=kind, asked=asked, begin=self.start, speed=self.speed, texts=texts)
            self.samples.append(sample)
            made.append(sample)
        return made

    def stop(self) -> None:
        """Send no more."""
        self._accepting = False
        self._next = None

    def finish(self, give_up: str) -> None:
        """Give up what is still in flight, and make records of everything."""
        self.driver.cancel(why=give_up)
        self.read()

    def steady(self) -> None:
        """The scored window begins."""
        self._since = self.mark()

    def ends(self) -> None:
        """The scored window ends."""
        self._until = self.mark()

    def mark(self) -> tuple[float, int, int]:
        """Processor time, pieces read and lags, so far."""
        return time.process_time(), self.driver.reads, len(self.driver.lags)

    def footprints(self) -> list[Footprint]:
        """What this process did in the window."""
        return [self.footprint(self._since, self._until)]

    def doubts(self, seconds: float) -> list[Doubt]:
        """What makes times uncertain that several clocks tell: this process has one."""
        del seconds
        return []

    def footprint(self, since: tuple[float, int, int], until: tuple[float, int, int]) -> Footprint:
        """What this process did between two marks."""
        driver = self.driver
        return Footprint(
            cpu=until[0] - since[0],
            reads=until[1] - since[1],
            lags=driver.lags[since[2] : until[2]] if until[2] > since[2] else array("f"),
            stamped=driver.stamped,
            stepped=driver.stepped,
            streams=self.part.streams,
            samples=len(self.samples),
            held=self.held,
        )

    def _over(self, call: Call) -> None:
        self.flying.discard(call)
        self._ended.append(call)
        self._unread += call.size
        bad = bool(call.error) or call.head is None or call.head.status != 200
        self.failed = self.failed + 1 if bad else 0
