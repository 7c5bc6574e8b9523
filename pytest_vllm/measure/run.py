"""Performs a declared load on a server that nobody else uses, and gives what it measured.

In order: a canary alone, the warm-up, `/metrics`; the load until its goals are decided or its budget is spent;
what still runs may finish; `/metrics` again once the server is idle, and the canary once more.
"""

from __future__ import annotations

import gc
import re
import secrets
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.measure.asking import Asking
from pytest_vllm.measure.driver import Call, Driver
from pytest_vllm.measure.health import Client, against_server, doubts
from pytest_vllm.measure.measured import Measured, Point
from pytest_vllm.measure.samples import sample_of
from pytest_vllm.measure.statistics import Outcome, Spending, percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_vllm.measure.samples import Sample
    from pytest_vllm.measure.workload import Workload
    from pytest_vllm.target import Server

#: Shares of the budget at which it is asked whether the goals are decided.
LOOKS = (0.12, 0.25, 0.4, 0.6, 0.8)
#: Seconds between two looks at the clock while streams run.
TICK = 0.05
#: Canaries under load, at most, and answers of the load that are kept.
CANARIES, KEPT = 6, 40
#: Bytes of responses that are kept unread, at most.
UNREAD = 16 * 2**20
_LINE = re.compile(r"^(vllm:[a-z_:]+)(?:\{[^}]*\})? +(\S+)", re.MULTILINE)
_FOLLOWED = re.compile(
    r"num_requests_(?:running|waiting)$|(?:kv|gpu)_cache_usage_perc|generation_tokens_total|prompt_tokens_total|"
    r"prefix_cache_(?:hits|queries)_total|num_preemptions_total|request_success_total"
)
_BUSY = ("vllm:num_requests_running", "vllm:num_requests_waiting")


def perform(
    key: str, workload: Workload, server: Server, say: Callable[[str], None] = lambda _text: None
) -> Measured:
    """Perform a load. Whatever breaks is told in the result's `stopped`; nothing is raised but a bug.

    Args:
        key: the measurement's key.
        workload: what is done.
        server: where.
        say: takes how far it is, several times a second.
    """
    started = time.perf_counter()
    run = Run(key, workload, server, say)
    try:
        with _quiet():
            run.all()
    except OSError as error:
        run.stopped = f"the server cannot be reached: {error}"
    finally:
        run.driver.close()
    return replace(run.measured(), cost=round(time.perf_counter() - started, 3))


def speed_of(server: Server) -> float:
    """How fast the server's clock runs against the wall's: 1, but for a simulator that says otherwise."""
    driver = Driver(server.url)
    try:
        found = _answer(driver, Asking(server, driver.host).get("/health"))
        return _speed(found)
    except OSError:
        return 1.0
    finally:
        driver.close()


class Run:
    """One performance of a load."""

    def __init__(self, key: str, workload: Workload, server: Server, say: Callable[[str], None]) -> None:
        """Nothing is sent yet. Raises OSError when the server has no address, ValueError on a bad prompt file."""
        from pytest_vllm.measure.workload import Script  # noqa: PLC0415

        self.key, self.workload, self.server, self._say = key, workload, server, say
        self.driver = Driver(server.url)
        self.asking = Asking(server, f"{self.driver.host}:{self.driver.port}")
        self.script = Script(workload, secrets.token_hex(4))
        self.speed = 1.0
        self.stopped = ""
        self.begin = time.perf_counter()
        self.samples: list[Sample] = []
        self._ended: list[Call] = []
        self._unread = 0
        self._flying: set[Call] = set()
        self._sent = self._short = self._kept = 0
        self._accepting = False
        self._extra: list[Sample] = []
        self._scrapes: list[tuple[float, str]] = []
        self._pending = self._counted = 0
        self.alone: list[str] = []
        self.loaded: list[str] = []
        self.before = self.after = self._first = ""
        self.looks: list[float] = []
        self.window = (0.0, 0.0)
        self.drained: float | None = None
        self._cpu = 0.0
        self._reads = (0, 0)
        self._lags = (0, 0)

    def all(self) -> None:
        """Everything, in order. Raises OSError when the server cannot be reached."""
        self.driver.open(1)
        self._first = self._scrape()
        if self.workload.canary:
            self._canary_alone()
        self._warm_up()
        self._settle()
        self.before = self._scrape()
        self.driver.open(min(self.workload.streams, 1024) + 2)
        self._load()
        self._drain()
        self.after = self._settle()
        self._counted = len(self._extra)
        if self.workload.canary:
            self._canary_alone()

    def measured(self) -> Measured:
        """What was found so far."""
        begin, end = self.window
        samples = tuple(replace(one, scored=begin <= one.intended < end) for one in self.samples)
        wall = (end - begin) / self.speed
        client = Client(
            cpu=self._cpu,
            seconds=wall,
            lags=self.driver.lags[self._lags[0] : self._lags[1]],
            stamped=self.driver.stamped,
            in_flight=_in_flight(samples, self.window),
            asked=None if self.workload.open_loop or self.workload.requests else self.workload.streams,
            stepped=self.driver.stepped,
        )
        found = doubts(client, samples, self.speed) if samples else []
        counted = [*self._extra[: self._counted], *self.samples]
        found += against_server(self._first, self.after, counted, self.speed)
        events = self._reads[1] - self._reads[0]
        return Measured(
            key=self.key,
            workload=self.workload,
            speed=self.speed,
            simulated=self.server.simulated,
            samples=tuple(sorted(samples, key=lambda one: one.sent)),
            window=self.window,
            timeline=tuple(self._points()),
            before=self.before,
            after=self.after,
            alone=tuple(self.alone),
            loaded=tuple(self.loaded),
            looks=tuple(self.looks),
            stopped=self.stopped,
            doubts=tuple(found),
            drained=self.drained,
            client={
                "cpu-share": round(self._cpu / wall, 4) if wall > 0 else 0.0,
                "events-s": round(events / wall, 1) if wall > 0 else 0.0,
                "cpu-us-per-event": round(self._cpu / events * 1e6, 2) if events else 0.0,
                "lag-p99-ms": round(percentile(client.lags, 0.99) * 1e3, 3) if len(client.lags) else 0.0,
                "in-flight": round(client.in_flight, 2),
                "kernel-times": float(client.stamped),
            },
        )

    def _load(self) -> None:
        workload = self.workload
        self.begin = time.perf_counter()
        self._reads = (self.driver.reads, 0)
        self._lags = (len(self.driver.lags), 0)
        cpu = time.process_time()
        budget = workload.seconds / self.speed
        self._accepting = True
        arrivals = self.script.arrivals() if workload.open_loop else None
        due = next(arrivals, None) if arrivals else None
        if arrivals is None:
            for number in range(workload.streams):
                self._ask(self.begin, part=(number + 1) / workload.streams)
        steady = self.begin if arrivals or workload.streams == 1 else 0.0
        next_scrape = next_canary = self.begin
        every = min(1.0, max(0.05, budget / 12))
        looks = [share for share in LOOKS if workload.goals]
        while not self.stopped:
            now = time.perf_counter()
            if not steady and (self._streaming() or now - self.begin > budget):
                steady = now
                cpu, self._reads = time.process_time(), (self.driver.reads, 0)
                self._lags = (len(self.driver.lags), 0)
            if arrivals is not None:
                while due is not None and self.begin + due / self.speed <= now:
                    self._ask(self.begin + due / self.speed)
                    due = next(arrivals, None) if self._may_ask() else None
            if now >= next_scrape and self.before:
                self._scrape_beside(now)
                next_scrape = now + every
            if workload.canary and steady and now >= next_canary and len(self.loaded) < CANARIES:
                self._canary_beside(now)
                next_canary = now + max(every, budget / CANARIES)
            if steady and looks and (now - steady) / budget >= looks[0]:
                share = looks.pop(0)
                if self._decided(share, steady, now):
                    self.stopped = "decided"
            if self._unread > UNREAD:
                self._read_ended()
            if steady and now - steady >= budget:
                self.stopped = "budget"
            elif not self._flying and not self._may_ask():
                self.stopped = "requests"
            self._tell(now, steady or now, budget)
            ahead = self.begin + due / self.speed if due is not None else now + TICK
            if not self.stopped:
                self.driver.turn(min(now + min(TICK, every), ahead))
        end = time.perf_counter()
        self._accepting = False
        self._cpu = time.process_time() - cpu
        self._reads = (self._reads[0], self.driver.reads)
        self._lags = (self._lags[0], len(self.driver.lags))
        self.window = ((steady - self.begin) * self.speed, (end - self.begin) * self.speed)
        if self.stopped == "budget" and workload.goals:
            self.looks.append(1.0)

    def _ask(self, intended: float, part: float = 1.0) -> None:
        """Send the next request of the load; the first of many streams are shorter, so that they spread out."""
        asked = self.script.next()
        output = asked.kind.output
        if output is not None and part < 1:
            output = max(2, round(output * part))
        call = Call(self.asking.load(asked, output), self._over, intended, (asked.kind.name, output))
        self._sent += 1
        self._flying.add(call)
        self.driver.submit(call)

    def _may_ask(self) -> bool:
        limit = self.workload.requests
        return self._accepting and (limit is None or self._sent < limit)

    def _over(self, call: Call) -> None:
        self._flying.discard(call)
        self._ended.append(call)
        self._unread += call.size
        if call.error and not call.size and self._accepting and len(self._ended) > 50:
            failed = sum(1 for one in self._ended[-50:] if one.error)
            if failed == 50:
                self.stopped = f"50 requests in a row failed: {call.error}"
        if not self.workload.open_loop and self._may_ask() and not self.stopped:
            self._ask(call.ended)

    def _streaming(self) -> bool:
        """Whether as many streams have begun to answer as can at once."""
        begun = sum(1 for call in self._flying if call.head and call.size > call.head.ends) + len(self._ended)
        return begun >= min(self.workload.streams, self.server.max_num_seqs or self.workload.streams)

    def _read_ended(self) -> None:
        """Make records of what has ended; its bytes are dropped."""
        ended, self._ended, self._unread = self._ended, [], 0
        for call in ended:
            kind, asked = call.label if isinstance(call.label, tuple) else ("", None)
            texts = self._kept < KEPT and len(self.samples) % 5 == 0
            self._kept += texts
            self.samples.append(
                sample_of(call, kind=kind, asked=asked, begin=self.begin, speed=self.speed, texts=texts)
            )

    def _decided(self, share: float, steady: float, now: float) -> bool:
        """Whether every goal is decided by what has ended; this look is paid for in any case."""
        self._read_ended()
        Spending(looks=self.looks).look(share)
        self.window = ((steady - self.begin) * self.speed, (now - self.begin) * self.speed)
        begin, end = self.window
        samples = tuple(replace(one, scored=begin <= one.intended < end) for one in self.samples)
        seen = Measured(
            self.key, self.workload, self.speed, samples=samples, window=self.window, looks=tuple(self.looks)
        )
        return all(
            seen.decide(goal.name, floor=goal.floor, ceiling=goal.ceiling, kind=goal.kind).outcome
            is not Outcome.OPEN
            for goal in self.workload.goals
        )

    def _drain(self) -> None:
        """Let what runs finish; what takes too long is given up."""
        deadline = time.perf_counter() + max(self.workload.patience / self.speed, 1.0)
        while (self._flying or self._pending) and time.perf_counter() < deadline:
            self.driver.turn(time.perf_counter() + 0.02)
            self._say(f"{self.key}: {len(self._flying)} requests are finishing")
        self.driver.cancel(why=f"not answered within {self.workload.patience:g} s")
        self._read_ended()

    def _settle(self) -> str:
        """Wait until the server has nothing to do and has counted it; its `/metrics` then."""
        began = time.perf_counter()
        patience = max(10.0 / self.speed, 2.0)
        last, text = "", ""
        self.drained = None
        while time.perf_counter() - began < patience:
            text = self._scrape()
            if not text:
                return ""
            values = followed(text)
            if sum(values.get(name, 0.0) for name in _BUSY) == 0:
                if self.drained is None:
                    self.drained = round((time.perf_counter() - began) * self.speed, 4)
                counts = repr(sorted(item for item in values.items() if item[0].endswith("_total")))
                if counts == last:
                    return text
                last = counts
            self.driver.turn(time.perf_counter() + 0.01)
        return text

    def _warm_up(self) -> None:
        kinds = {kind.name: kind for kind in self.workload.kinds}
        for _ in range(self.workload.warmup):
            asked = self.script.next()
            kind = kinds[asked.kind.name]
            output = min(kind.output, 8) if kind.output else None
            call = _answer(self.driver, self.asking.load(asked, output))
            self.speed = _speed(call)
            sample = sample_of(
                call, kind=kind.name, asked=output, begin=self.begin, speed=self.speed, texts=False
            )
            self._extra.append(sample)
            if sample.prompt_tokens and not kind.prompts.file and not kind.chat:
                words = len(asked.prompt.split())
                self.script.words_per_token = min(1.2, max(0.2, words / sample.prompt_tokens))

    def _canary_alone(self) -> None:
        call = _answer(self.driver, self.asking.canary())
        self.speed = _speed(call)
        self._hear(call, self.alone)

    def _canary_beside(self, now: float) -> None:
        def over(call: Call) -> None:
            self._pending -= 1
            self._hear(call, self.loaded)

        self._pending += 1
        self.driver.submit(Call(self.asking.canary(), over, now))

    def _hear(self, call: Call, where: list[str]) -> None:
        sample = sample_of(call, kind="canary", asked=None, begin=self.begin, speed=self.speed, texts=True)
        self._extra.append(sample)
        if sample.good or sample.text:
            where.append(sample.text)

    def _scrape(self) -> str:
        call = _answer(self.driver, self.asking.get("/metrics"))
        return _body(call)

    def _scrape_beside(self, now: float) -> None:
        def over(call: Call) -> None:
            self._pending -= 1
            if text := _body(call):
                self._scrapes.append(((now - self.begin), text))

        self._pending += 1
        self.driver.submit(Call(self.asking.get("/metrics"), over, now))

    def _points(self) -> Iterator[Point]:
        for at, text in self._scrapes:
            yield Point(round(at * self.speed, 4), followed(text))

    def _tell(self, now: float, steady: float, budget: float) -> None:
        spent = now - steady
        rate = (self.driver.reads - self._reads[0]) / spent / self.speed if spent > 0.2 else 0.0
        speed = f", {rate:.4g} events/s" if rate else ""
        self._say(
            f"{self.key}: {len(self._flying)} in flight, {self._sent - len(self._flying)} done{speed}, "
            f"{spent * self.speed:.0f} of at most {budget * self.speed:.0f} s"
        )


def followed(text: str) -> dict[str, float]:
    """The gauges and counters of a scrape that are followed over time, summed over engines."""
    found: dict[str, float] = {}
    for name, value in _LINE.findall(text):
        if _FOLLOWED.search(name):
            try:
                found[name] = found.get(name, 0.0) + float(value)
            except ValueError:
                continue
    return found


def _in_flight(samples: tuple[Sample, ...], window: tuple[float, float]) -> float:
    begin, end = window
    if end <= begin:
        return 0.0
    return sum(max(0.0, min(one.end, end) - max(one.sent, begin)) for one in samples) / (end - begin)


def _answer(driver: Driver, message: bytes, timeout: float = 60.0) -> Call:
    """Send one request and wait for it."""
    over: list[Call] = []
    call = driver.submit(Call(message, over.append, time.perf_counter()))
    deadline = time.perf_counter() + timeout
    while not over and time.perf_counter() < deadline:
        driver.turn(0.0 if over else time.perf_counter() + 0.002)
    if not over:
        driver.cancel(why=f"not answered within {timeout:g} s")
    return call


def _speed(call: Call) -> float:
    told = call.head.fields.get("x-sim-speed", "") if call.head else ""
    try:
        return float(told) if told else 1.0
    except ValueError:
        return 1.0


def _body(call: Call) -> str:
    if call.error or call.head is None or call.head.status != 200:
        return ""
    from pytest_vllm.measure.wirebytes import body_pieces  # noqa: PLC0415

    parts = (data for data, _ in body_pieces(call.head, call.pieces, call.times))
    return b"".join(parts).decode("utf-8", "replace")


@contextmanager
def _quiet() -> Iterator[None]:
    """Without garbage collection, which takes tens of milliseconds at the wrong moment."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
