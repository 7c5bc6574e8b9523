"""The load itself: sends by the clock or as answers end, until goals are decided or the budget is spent."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_vllm.measure.driver import Call
from pytest_vllm.measure.measured import Measured, Point
from pytest_vllm.measure.samples import Sample, sample_of
from pytest_vllm.measure.statistics import Outcome, Spending
from pytest_vllm.measure.talk import followed

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterator

    from pytest_vllm.measure.talk import Talk
    from pytest_vllm.measure.workload import Goal, Script, Workload

#: Shares of the budget at which it is asked whether the goals are decided.
LOOKS = (0.12, 0.25, 0.4, 0.6, 0.8)
#: Seconds between two looks at the clock while streams run.
TICK = 0.05
#: Canaries under load, at most, and answers of the load that are kept.
CANARIES, KEPT = 6, 40
#: Bytes of responses that are kept unread, at most.
UNREAD = 16 * 2**20
#: So many requests in a row that fail end the load.
HOPELESS = 50


@dataclass
class Footprint:
    """What the client itself did since the load became steady."""

    cpu: float = 0.0
    reads: int = 0
    lags: int = 0


@dataclass
class Load:
    """One load on one server. Times are perf_counter's, but for those of samples and window.

    Args:
        key: the measurement's key.
        workload: what is done.
        talk: carries it.
        script: what is asked.
        speed: the server's seconds per second of ours.
        batch: how many requests the server computes at once; None when unknown.
        say: takes how far it is.
        scraped: whether the server has metrics to follow.
        simulated: whether it is the simulator, whose own counts are judged: see `estimates`.
    """

    key: str
    workload: Workload
    talk: Talk
    script: Script
    speed: float
    batch: int | None
    say: Callable[[str], None]
    scraped: bool = True
    simulated: bool = False
    begin: float = 0.0
    steady: float = 0.0
    end: float = 0.0
    stopped: str = ""
    samples: list[Sample] = field(default_factory=list)
    scrapes: list[tuple[float, str]] = field(default_factory=list)
    canaries: list[Sample] = field(default_factory=list)
    looks: list[float] = field(default_factory=list)
    flying: set[Call] = field(default_factory=set)
    pending: int = 0

    def __post_init__(self) -> None:
        """Nothing is sent yet."""
        self._ended: list[Call] = []
        self._unread = self._sent = self._kept = self._failed = 0
        self._accepting = True
        self._budget = self.workload.seconds / self.speed
        self._every = (
            max(0.02, self._budget / 40) if self.simulated else min(1.0, max(0.05, self._budget / 12))
        )
        self._due: float | None = None
        self._arrivals: Iterator[float] = iter(())
        self._coming = list(LOOKS) if self.workload.goals else []
        self._next_scrape = self._next_canary = 0.0
        self._since = Footprint()
        self.footprint = Footprint()

    @property
    def window(self) -> tuple[float, float]:
        """The scored part: from and to, in the server's seconds from the start."""
        end = self.end or time.perf_counter()
        return ((self.steady or end) - self.begin) * self.speed, (end - self.begin) * self.speed

    @property
    def lags(self) -> array[float]:
        """Lags of the window."""
        return self.talk.driver.lags[self._since.lags : self._since.lags + self.footprint.lags]

    def run(self) -> None:
        """Send until it is over; what runs then is left running."""
        self.begin = time.perf_counter()
        if self.workload.open_loop:
            self._arrivals = self.script.arrivals()
            self._due = next(self._arrivals, None)
            self._becomes_steady(self.begin)
        else:
            for number in range(self.workload.streams):
                self._ask(self.begin, part=(number + 1) / self.workload.streams)
            if self.workload.streams == 1:
                self._becomes_steady(self.begin)
        while not self.stopped:
            now = time.perf_counter()
            if not self.steady and (self._streaming() or now - self.begin > self._budget):
                self._becomes_steady(now)
            self._arrive(now)
            self._beside(now)
            self._look(now)
            self._tell(now)
            if not self.stopped:
                due = self.begin + self._due / self.speed if self._due is not None else now + TICK
                self.talk.driver.turn(min(now + min(TICK, self._every), due))
        self._accepting = False
        self.end = time.perf_counter()
        self._count()
        if self.stopped == "budget" and self.workload.goals:
            self.looks.append(1.0)

    def drain(self) -> None:
        """Let what runs finish; what takes too long is given up."""
        deadline = time.perf_counter() + max(self.workload.patience / self.speed, 1.0)
        while (self.flying or self.pending) and time.perf_counter() < deadline:
            self.talk.driver.step(TICK)
            self.say(f"{self.key}: {len(self.flying)} requests are finishing")
        self.talk.driver.cancel(why=f"not answered within {self.workload.patience:g} s")
        self.read_ended()

    def read_ended(self) -> None:
        """Make records of what has ended; its bytes are dropped."""
        ended, self._ended, self._unread = self._ended, [], 0
        for call in ended:
            kind, asked = call.label if isinstance(call.label, tuple) else ("", None)
            texts = self._kept < KEPT and len(self.samples) % 5 == 0
            self._kept += texts
            self.samples.append(self._sample(call, kind, asked, texts=texts))

    def scored(self) -> tuple[Sample, ...]:
        """Every request so far, those of the window marked."""
        begin, end = self.window
        return tuple(replace(one, scored=begin <= one.intended < end) for one in self.samples)

    def timeline(self) -> tuple[Point, ...]:
        """What was scraped while it ran."""
        return tuple(Point(round(at, 4), followed(text)) for at, text in self.scrapes)

    def _sample(self, call: Call, kind: str, asked: int | None, *, texts: bool) -> Sample:
        return sample_of(call, kind=kind, asked=asked, begin=self.begin, speed=self.speed, texts=texts)

    def _becomes_steady(self, now: float) -> None:
        self.steady = self._next_canary = now
        driver = self.talk.driver
        self._since = Footprint(time.process_time(), driver.reads, len(driver.lags))

    def _count(self) -> None:
        driver, since = self.talk.driver, self._since
        cpu = time.process_time() - since.cpu
        self.footprint = Footprint(cpu, driver.reads - since.reads, len(driver.lags) - since.lags)

    def _arrive(self, now: float) -> None:
        while self._due is not None and self.begin + self._due / self.speed <= now:
            self._ask(self.begin + self._due / self.speed)
            self._due = next(self._arrivals, None) if self._may_ask() else None

    def _ask(self, intended: float, part: float = 1.0) -> None:
        """Send the next request; the first of many streams are shorter, so that their ends spread out."""
        asked = self.script.next()
        output = asked.output
        if output is not None and part < 1:
            output = max(2, round(output * part))
        call = Call(self.talk.asking.load(asked, output), self._over, intended, (asked.kind.name, output))
        self._sent += 1
        self.flying.add(call)
        self.talk.driver.submit(call)

    def _may_ask(self) -> bool:
        limit = self.workload.requests
        return self._accepting and not self.stopped and (limit is None or self._sent < limit)

    def _over(self, call: Call) -> None:
        self.flying.discard(call)
        self._ended.append(call)
        self._unread += call.size
        bad = bool(call.error) or call.head is None or call.head.status != 200
        self._failed = self._failed + 1 if bad else 0
        if self._failed >= HOPELESS:
            self.stopped = f"{HOPELESS} requests in a row failed"
        if not self.workload.open_loop and self._may_ask():
            self._ask(call.ended)

    def _streaming(self) -> bool:
        """Whether as many streams have begun to answer as can at once."""
        begun = sum(1 for call in self.flying if call.head and call.size > call.head.ends)
        return begun + self._sent - len(self.flying) >= min(
            self.workload.streams, self.batch or self.workload.streams
        )

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
        self.canaries.append(self._sample(call, "canary", None, texts=True))

    def _look(self, now: float) -> None:
        """Whether it is over."""
        if self._unread > UNREAD:
            self.read_ended()
        if self.steady and self._coming and (now - self.steady) / self._budget >= self._coming[0]:
            share = self._coming.pop(0)
            if self._decided(share):
                self.stopped = "decided"
        if self.steady and now - self.steady >= self._budget:
            self.stopped = self.stopped or "budget"
        elif not self.flying and self._due is None and (self.workload.open_loop or not self._may_ask()):
            self.stopped = self.stopped or "requests"

    def _decided(self, share: float) -> bool:
        """Whether every goal is decided by what has ended; this look is paid for in any case."""
        self.read_ended()
        Spending(looks=self.looks).look(share)
        seen = Measured(
            self.key,
            self.workload,
            self.speed,
            self.simulated,
            samples=self.scored(),
            window=self.window,
            timeline=self.timeline(),
            looks=tuple(self.looks),
        )
        return all(settled(seen, goal) for goal in self.workload.goals)

    def _tell(self, now: float) -> None:
        spent = now - (self.steady or now)
        rate = (self.talk.driver.reads - self._since.reads) / spent / self.speed if spent > 0.2 else 0.0
        speed = f", {rate:.4g} events/s" if rate else ""
        self.say(
            f"{self.key}: {len(self.flying)} in flight, {self._sent - len(self.flying)} done{speed}, "
            f"{spent * self.speed:.0f} of at most {self.workload.seconds:.0f} s"
        )


def settled(seen: Measured, goal: Goal) -> bool:
    """Whether what was seen so far is enough for a goal."""
    decided = seen.decide(goal.name, floor=goal.floor, ceiling=goal.ceiling, kind=goal.kind)
    found = decided.interval
    if found is None or decided.outcome is Outcome.OPEN:
        return False
    return goal.within is None or (found.high - found.low) / 2 <= goal.within * abs(found.value)
