"""Performs a declared load on a server that nobody else uses, and gives what it measured.

In order: a canary alone, the warm-up, `/metrics`; the load until its goals are decided or its budget is
spent; what still runs may finish; `/metrics` again once the server is idle, and the canary once more.
"""

from __future__ import annotations

import gc
import secrets
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.measure.asking import Asking
from pytest_vllm.measure.driver import Driver
from pytest_vllm.measure.health import against_server, doubts
from pytest_vllm.measure.held import MARGIN, excused, joined, touches
from pytest_vllm.measure.load import Load
from pytest_vllm.measure.measured import Measured
from pytest_vllm.measure.samples import sample_of
from pytest_vllm.measure.sender import CONNECTIONS, Part, Sender
from pytest_vllm.measure.statistics import percentile
from pytest_vllm.measure.swarm.crew import Spoiled
from pytest_vllm.measure.swarm.spread import Spread
from pytest_vllm.measure.talk import Talk, speed_told
from pytest_vllm.measure.workload import Prompts, Script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_vllm.measure.health import Client
    from pytest_vllm.measure.load import Sending
    from pytest_vllm.measure.samples import Sample
    from pytest_vllm.measure.swarm.crew import Crew
    from pytest_vllm.measure.workload import Kind, Workload
    from pytest_vllm.wire.server import Server

#: Seconds of the server's clock for its queue to empty, and of the wall's at least.
EMPTYING, LEAST_EMPTYING = 5.0, 2.0
#: Tokens of a warm-up answer, at most.
WARM = 8
#: Tokens of a prompt that fits whatever the tokenizer makes of it: longer ones are sized by what it tells.
SHORT = 100
#: How often a canary is asked, at most, while this process is held up.
TRIES = 3


def perform(
    key: str,
    workload: Workload,
    server: Server,
    say: Callable[[str], None] = lambda _text: None,
    crew: Crew | None = None,
) -> Measured:
    """Perform a load. A server that breaks is told in the result; nothing is raised but for a bug.

    Args:
        key: the measurement's key.
        workload: what is done.
        server: where.
        say: takes how far it is, several times a second.
        crew: the worker processes that send it; None: this process does.
    """
    started = time.perf_counter()
    if crew is not None and crew.broken:
        return Measured(key, workload, simulated=server.simulated, spoiled=crew.broken)
    try:
        script = Script(workload, secrets.token_hex(4))
        driver = Driver(server.url, access=server.access)
    except (OSError, ValueError) as error:
        return Measured(key, workload, simulated=server.simulated, stopped=f"not begun: {error}")
    talk = Talk(driver, Asking(server, driver.route))
    sender: Sending
    if crew is None:
        sender = Sender(workload, driver, talk.asking, script, Part.whole(workload))
    else:
        sender = Spread(crew, workload, server, script)
    run = _Run(Load(key, workload, talk, sender, 1.0, server.max_num_seqs, say), server, script)
    try:
        with _quiet():
            run.all()
    except OSError as error:
        run.broken = f"the server cannot be reached: {error}"
    except Spoiled as reason:
        run.spoiled = str(reason)
    finally:
        driver.close()
        if isinstance(sender, Spread):
            sender.abandon()
    return run.measured(round(time.perf_counter() - started, 3))


def speed_of(server: Server) -> float:
    """How fast the server's clock runs against the wall's: 1, but for a simulator that says otherwise."""
    try:
        driver = Driver(server.url, access=server.access)
    except OSError:
        return 1.0
    try:
        asking = Asking(server, driver.route)
        return speed_told(Talk(driver, asking).ask(asking.get("/health")))
    finally:
        driver.close()


class _Run:
    """One performance of a load, from the first canary to the last."""

    def __init__(self, load: Load, server: Server, script: Script) -> None:
        self.load, self.server = load, server
        self.workload, self.script, self.talk = load.workload, script, load.talk
        self.driver = load.talk.driver
        self.broken = self.spoiled = self.first = self.before = self.after = ""
        self.speed = 1.0
        self.around: list[Sample] = []
        self.late: list[Sample] = []
        self.drained: float | None = None

    def all(self) -> None:
        """Everything, in order. Raises OSError when the server cannot be reached."""
        self.driver.open(1)
        self.first = self.talk.scrape()
        if self.workload.canary:
            self.around += self._canary()
        if any(kind.prompts.tokens > SHORT for kind in self.workload.kinds):
            self.around.append(self._warm_up(replace(self.workload.kinds[0], prompts=Prompts(SHORT))))
        for _ in range(self.workload.warmup):
            self.around.append(self._warm_up())
        self.before, _ = self.talk.idle(LEAST_EMPTYING)
        self.driver.open(min(self.workload.streams, CONNECTIONS) + 2)
        self.load = replace(
            self.load, speed=self.speed, scraped=bool(self.before), simulated=self.server.simulated
        )
        self.load.run()
        self.load.drain()
        if self.load.silent:
            return  # each further question would wait for a minute
        self.after, self.drained = self._idle()
        if self.workload.canary:
            self.late += self._canary()

    def measured(self, cost: float) -> Measured:
        """What was found."""
        load, simulated = self.load, self.server.simulated
        unheard = set(map(id, excused(load.canaries, load.sender.held, self.speed)))
        samples = load.scored()
        clients = load.clients(samples)
        found = []
        for client, own in clients if samples else ():
            found += doubts(client, own, self.speed, counted=simulated)
        found += load.sender.doubts((load.window[1] - load.window[0]) / self.speed)
        if not simulated:  # which is judged by its own counts
            told = [*self.around, *load.canaries, *samples]
            found += against_server(self.first, self.after, told, self.speed)
        return Measured(
            key=load.key,
            workload=self.workload,
            speed=self.speed,
            simulated=simulated,
            samples=tuple(sorted(samples, key=lambda one: one.sent)),
            window=load.window,
            timeline=load.timeline(),
            before=self.before,
            after=self.after,
            alone=tuple(one.text for one in (*self.around[:1], *self.late) if one.kind == "canary"),
            loaded=tuple(one.text for one in load.canaries if id(one) not in unheard),
            looks=tuple(load.looks),
            stopped=self.broken or load.silent or load.stopped,
            spoiled=self.spoiled,
            doubts=tuple(found),
            drained=self.drained,
            held=load.sender.held,
            cost=cost,
            client=_shown([client for client, _ in clients]),
            hung=bool(load.silent),
        )

    def _canary(self) -> list[Sample]:
        """The canary asked alone; nothing where it got no answer while this process was held up."""
        for _ in range(TRIES):
            call = self.talk.ask(self.talk.asking.canary())
            self.speed = speed_told(call)
            sample = sample_of(
                call, kind="canary", asked=None, begin=call.intended, speed=self.speed, texts=True
            )
            held = touches(call.intended - MARGIN, call.ended + MARGIN, joined(self.driver.held))
            if not (sample.lost and held):
                return [sample]
        return []

    def _warm_up(self, only: Kind | None = None) -> Sample:
        asked = self.script.next(only)
        kind = asked.kind
        output = min(asked.output, WARM) if asked.output else None
        call = self.talk.ask(self.talk.asking.load(asked, output))
        self.speed = speed_told(call)
        sample = sample_of(
            call, kind=kind.name, asked=output, begin=call.intended, speed=self.speed, texts=False
        )
        if sample.prompt_tokens and not kind.prompts.file and not kind.chat:
            self.script.learn(len(asked.prompt.split()), sample.prompt_tokens)
        return sample

    def _idle(self) -> tuple[str, float | None]:
        text, seconds = self.talk.idle(max(EMPTYING / self.speed, LEAST_EMPTYING))
        return text, None if seconds is None else round(seconds * self.speed, 4)


def _shown(clients: Sequence[Client]) -> dict[str, float]:
    """Figures of the client; of several processes the worst or the sum, and the share of a core of each."""
    seconds = max((one.seconds for one in clients), default=0.0)
    events = sum(one.events for one in clients)
    if seconds <= 0 or not events:
        return {}
    lags = [percentile(one.lags, 0.99) for one in clients if len(one.lags)]
    each = {f"cpu-share of {one.who}": round(one.cpu / seconds, 4) for one in clients if one.who}
    return {
        "cpu-share": round(max(one.cpu for one in clients) / seconds, 4),
        "events-s": round(events / seconds, 1),
        "cpu-us-per-event": round(sum(one.cpu for one in clients) / events * 1e6, 2),
        "lag-p99-ms": round(max(lags, default=0.0) * 1e3, 3),
        "in-flight": round(sum(one.in_flight for one in clients), 2),
        "kernel-times": float(all(one.stamped for one in clients)),
        **each,
    }


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
