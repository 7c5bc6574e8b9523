"""The load itself: goes on until its goals are decided or the budget is spent.

What is sent, a `Sender` sends: the one of this process, or those of other processes (`swarm`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from pytest_vllm.measure.driver import Call
from pytest_vllm.measure.health import Client
from pytest_vllm.measure.held import joined, left, length, too_little
from pytest_vllm.measure.measured import Measured, Point
from pytest_vllm.measure.samples import Sample, sample_of
from pytest_vllm.measure.sender import HOPELESS
from pytest_vllm.measure.statistics import Outcome, Spending
from pytest_vllm.measure.talk import followed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_vllm.measure.health import Doubt
    from pytest_vllm.measure.held import Span
    from pytest_vllm.measure.sender import Footprint
    from pytest_vllm.measure.talk import Talk
    from pytest_vllm.measure.workload import Goal, Workload

#: Shares of the budget at which it is asked whether the goals are decided.
LOOKS = (0.12, 0.25, 0.4, 0.6, 0.8)
#: Seconds between two looks at the clock while streams run.
TICK = 0.05
#: Canaries under load, at most.
CANARIES = 6
#: How many times its budget a load may last: to make up for time in which this process was held up, and where
#: a slow server has shown too little yet for any estimate.
LONGEST = 3.0
#: Shares of the budget between two questions whether there is enough for one.
AGAIN = 0.05
#: Seconds without a byte of any answer after which `/health` is asked too, and after which the load ends.
DOUBTFUL, SILENT = 10.0, 30.0


class Sending(Protocol):
    """What a load needs of what sends its requests: `Sender` says what each is."""

    @property
    def samples(self) -> Sequence[Sample]: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def sent(self) -> int: ...
    @property
    def begun(self) -> int: ...
    @property
    def reads(self) -> int: ...
    @property
    def hopeless(self) -> bool: ...
    @property
    def finished(self) -> bool: ...
    @property
    def due(self) -> float: ...
    @property
    def held(self) -> tuple[Span, ...]: ...
    def begin(self, speed: float) -> float: ...
    def serve(self, now: float) -> None: ...
    def read(self) -> object: ...
    def steady(self) -> None: ...
    def ends(self) -> None: ...
    def stop(self) -> None: ...
    def finish(self, give_up: str) -> None: ...
    def footprints(self) -> list[Footprint]: ...
    def doubts(self, seconds: float) -> list[Doubt]: ...


@dataclass
class Load:
    """One load on one server. Times are perf_counter's, but for those of samples and window.

    Args:
        key: the measurement's key.
        workload: what is done.
        talk: carries what is asked beside it.
        sender: sends its requests.
        speed: the server's seconds per second of ours.
        batch: how many requests the server computes at once; None when unknown.
        say: takes how far it is.
        scraped: whether the server has metrics to follow.
        simulated: whether it is the simulator, whose own counts are judged: see `estimates`.
    """

    key: str
    workload: Workload
    talk: Talk
    sender: Sending
    speed: float
    batch: int | None
    say: Callable[[str], None]
    scraped: bool = True
    simulated: bool = False
    begin: float = 0.0
    steady: float = 0.0
    end: float = 0.0
    stopped: str = ""
    scrapes: list[tuple[float, str]] = field(default_factory=list)
    canaries: list[Sample] = field(default_factory=list)
    looks: list[float] = field(default_factory=list)
    pending: int = 0
    #: That nothing at all was answered for long, in words; empty while something is.
    silent: str = ""

    def __post_init__(self) -> None:
        """Nothing is sent yet."""
        self._budget = self.workload.seconds / self.speed
        self._every = (
            max(0.02, self._budget / 80) if self.simulated else min(1.0, max(0.05, self._budget / 12))
        )
        self._coming = list(LOOKS) if self.workload.goals else []
        self._next_scrape = self._next_canary = 0.0
        self._read_before = 0
        self._next_count = self._budget
        self._heard_at, self._bytes, self._doubted = 0.0, -1, False

    @property
    def window(self) -> tuple[float, float]:
        """The scored part: from and to, in the server's seconds from the start."""
        end = self.end or time.perf_counter()
        return ((self.steady or end) - self.begin) * self.speed, (end - self.begin) * self.speed

    def run(self) -> None:
        """Send until it is over; what runs then is left running."""
        self.begin = self.sender.begin(self.speed)
        if self.workload.open_loop or self.workload.streams == 1:
            self._becomes_steady(self.begin)
        while not self.stopped:
            now = time.perf_counter()
            if not self.steady and (self._streaming() or now - self.begin > self._budget):
                self._becomes_steady(now)
            self.sender.serve(now)
            self._beside(now)
            spent = self._spent(now)
            self._look(now, spent)
            self._tell(spent)
            if not self.stopped:
                self.talk.driver.turn(min(now + min(TICK, self._every), self.sender.due))
        self.end = time.perf_counter()
        self.sender.stop()
        self.sender.ends()
        if self.stopped == "budget" and self.workload.goals:
            self.looks.append(1.0)

    def drain(self) -> None:
        """Let what runs finish; what takes too long is given up."""
        deadline = time.perf_counter() + max(self.workload.patience / self.speed, 1.0)
        while (self.sender.in_flight or self.pending) and time.perf_counter() < deadline and not self.silent:
            self.talk.driver.step(TICK)
            self.sender.serve(time.perf_counter())
            self._listen(time.perf_counter())
            self.say(f"{self.key}: {self.sender.in_flight} requests are finishing")
        why = self.silent or f"not answered within {self.workload.patience:g} s"
        self.talk.driver.cancel(why=why)
        self.sender.finish(why)

    def scored(self) -> tuple[Sample, ...]:
        """Every request so far, those of the window marked."""
        begin, end = self.window
        return tuple(replace(one, scored=begin <= one.intended < end) for one in self.sender.samples)

    def clients(self, samples: Sequence[Sample]) -> list[tuple[Client, Sequence[Sample]]]:
        """Every process that sent, and which of these samples are its own; they are those of `scored`."""
        begin, end = self.window
        loop = not (self.workload.open_loop or self.workload.requests)
        held = self.sender.held
        free = left(self.window, held)
        starved = too_little(self.window, held, self.workload.seconds)
        found: list[tuple[Client, Sequence[Sample]]] = []
        at = 0
        for one in self.sender.footprints():
            own = samples[at : at + one.samples]
            at += one.samples
            client = Client(
                cpu=one.cpu,
                seconds=(end - begin) / self.speed,
                held=(end - begin - length(free)) / self.speed,
                starved=starved,
                lags=one.lags,
                stamped=one.stamped,
                in_flight=in_flight(own, free),
                asked=one.streams if loop else None,
                stepped=one.stepped,
                events=one.reads,
                who=one.who,
            )
            found.append((client, own))
        return found

    def timeline(self) -> tuple[Point, ...]:
        """What was scraped while it ran."""
        return tuple(Point(round(at, 4), followed(text)) for at, text in self.scrapes)

    def _becomes_steady(self, now: float) -> None:
        self.steady = self._next_canary = now
        self.sender.steady()
        self._read_before = self.sender.reads

    def _streaming(self) -> bool:
        """Whether as many streams have begun to answer as can at once."""
        return self.sender.begun >= min(self.workload.streams, self.batch or self.workload.streams)

    def _beside(self, now: float) -> None:
        """Scrapes and canaries, every so often."""
        if self.scraped and now >= self._next_scrape:
            self._next_scrape = now + self._every
            self.pending += 1
            self.talk.scrape_beside(lambda text: self._scraped(now - self.begin, text))
        # beside a single stream a canary would be a second one: there it is asked before and after alone
        due = self.workload.canary and self.workload.streams > 1 and self.steady and now >= self._next_canary
        if due and len(self.canaries) + self.pending <= CANARIES:
            self._next_canary = now + max(self._every, self._budget / CANARIES)
            self.pending += 1
            self.talk.driver.submit(Call(self.talk.asking.canary(), self._heard, now))

    def _scraped(self, at: float, text: str) -> None:
        self.pending -= 1
        if text:
            self.scrapes.append((at * self.speed, text))

    def _heard(self, call: Call) -> None:
        self.pending -= 1
        self.canaries.append(
            sample_of(call, kind="canary", asked=None, begin=self.begin, speed=self.speed, texts=True)
        )

    def _listen(self, now: float) -> None:
        """Whether anything is answered at all: a stream, a scrape, or `/health`, which is asked in doubt.

        A server that computes without a word for minutes still answers the latter two.
        """
        heard = self.sender.reads + self.talk.driver.reads
        if heard != self._bytes or not (self.sender.in_flight or self.pending):
            self._bytes, self._heard_at, self._doubted = heard, now, False
        held = ((begin, end) for begin, end in joined(self.talk.driver.held) if end > self._heard_at)
        quiet = length(left((self._heard_at, now), tuple(held)))
        if quiet > DOUBTFUL and not self._doubted:
            self._doubted = True
            self.talk.driver.submit(Call(self.talk.asking.get("/health"), lambda _: None, now))
        if quiet > SILENT:
            self.silent = f"no byte of any answer came for {quiet:.0f} s, nor of /health"

    def _look(self, now: float, spent: float) -> None:
        """Whether it is over."""
        self._listen(now)
        self.stopped = self.silent
        if self.sender.hopeless:
            self.stopped = f"{HOPELESS} requests in a row failed"
        if self.steady and self._coming and spent >= self._coming[0] * self._budget:
            share = self._coming.pop(0)
            if self._decided(share):
                self.stopped = "decided"
        if self._over(now, spent):
            self.stopped = self.stopped or "budget"
        elif self.sender.finished:
            self.stopped = self.stopped or "requests"

    def _over(self, now: float, spent: float) -> bool:
        """Whether its time is over: with goals not before each can be estimated, or thrice the time is."""
        if not self.steady:
            return False
        if now - self.steady >= LONGEST * self._budget:
            return True
        if spent < self._next_count:
            return False
        self._next_count = spent + AGAIN * self._budget
        if not self.workload.goals:
            return True
        self.sender.read()
        seen = self._seen()
        return all(seen.enough(goal.name, goal.kind) for goal in self.workload.goals)

    def _spent(self, now: float) -> float:
        """Seconds of the window so far in which the client was not held up; a simulator counts for itself."""
        if not self.steady:
            return 0.0
        if self.simulated:
            return now - self.steady
        window = (self.steady - self.begin) * self.speed, (now - self.begin) * self.speed
        return length(left(window, self.sender.held)) / self.speed

    def _decided(self, share: float) -> bool:
        """Whether every goal is decided by what has ended; this look is paid for in any case."""
        self.sender.read()
        Spending(looks=self.looks).look(share)
        seen = self._seen()
        return all(settled(seen, goal) for goal in self.workload.goals)

    def _seen(self) -> Measured:
        """What was seen so far."""
        return Measured(
            self.key,
            self.workload,
            self.speed,
            self.simulated,
            samples=self.scored(),
            window=self.window,
            timeline=self.timeline(),
            looks=tuple(self.looks),
            held=self.sender.held,
        )

    def _tell(self, spent: float) -> None:
        flying = self.sender.in_flight
        rate = (self.sender.reads - self._read_before) / spent / self.speed if spent > 0.2 else 0.0
        speed = f", {rate:.4g} events/s" if rate else ""
        self.say(
            f"{self.key}: {flying} in flight, {self.sender.sent - flying} done{speed}, "
            f"{spent * self.speed:.0f} of at most {self.workload.seconds:.0f} s"
        )


def settled(seen: Measured, goal: Goal) -> bool:
    """Whether what was seen so far is enough for a goal."""
    decided = seen.decide(goal.name, floor=goal.floor, ceiling=goal.ceiling, kind=goal.kind)
    found = decided.interval
    if found is None or decided.outcome is Outcome.OPEN:
        return False
    return goal.within is None or (found.high - found.low) / 2 <= goal.within * abs(found.value)


def in_flight(samples: Sequence[Sample], pieces: Sequence[Span]) -> float:
    """How many of these requests were in flight on average, in these pieces of the window."""
    if not pieces:
        return 0.0
    shares = (max(0.0, min(one.end, to) - max(one.sent, since)) for one in samples for since, to in pieces)
    return sum(shares) / length(pieces)
