"""A load as the workers of a crew send it: shared out, begun together, put together again.

Every record comes here, and every one is counted: what a worker says that it sent must be here, or nothing
of the load counts.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from pytest_vllm.measure.health import Doubt
from pytest_vllm.measure.held import joined
from pytest_vllm.measure.samples import Sample
from pytest_vllm.measure.sender import KEPT, Footprint, Part
from pytest_vllm.measure.swarm.clocks import Offset, offset_of, uncertainty
from pytest_vllm.measure.swarm.crew import Spoiled
from pytest_vllm.wire.policy import route_to
from pytest_vllm.wire.proxy import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_vllm.measure.held import Span
    from pytest_vllm.measure.swarm.crew import Crew
    from pytest_vllm.measure.workload import Script, Workload
    from pytest_vllm.wire.server import Server

#: Seconds for workers to get ready, and to give their records.
READY, RECORDS = 30.0, 60.0
#: Seconds from the last word before a load to its beginning, and round trips of the slowest worker.
LEAD, TRIPS = 0.05, 4
#: Seconds of the server's clock between two reports of a worker; of the wall's at least, and for each worker.
EVERY, LEAST_EVERY, PER_WORKER = 0.02, 0.005, 0.001
#: Share of a window that clocks may differ by.
APART = 0.01


@dataclass(eq=False)
class Told:
    """What one worker has told of a load.

    Args:
        users: that Locust gave it.
        progress: its latest.
        samples: its records, in order.
        read: how many it had sent when it was last asked for all.
        closed: how it ended.
        before: its clock against ours, before the load.
        after: and after it.
    """

    users: int | None = None
    progress: dict[str, Any] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    read: int | None = None
    closed: dict[str, Any] | None = None
    before: Offset | None = None
    after: Offset | None = None


class Spread:
    """Sends a load by a crew; a `Sending`. Raises Spoiled from any method when a worker is lost.

    Args:
        crew: master and workers.
        workload: what is done.
        server: where.
        script: from which this process has asked what came before the load.
    """

    def __init__(self, crew: Crew, workload: Workload, server: Server, script: Script) -> None:
        """Nothing is told to the workers yet."""
        self._crew, self._workload, self._server, self._script = crew, workload, server, script
        self._load = crew.next_load()
        self._told = {worker: Told() for worker in crew.names}
        self._users = False
        self._every = EVERY

    @property
    def samples(self) -> list[Sample]:
        """All records, worker by worker."""
        return [one for told in self._told.values() for one in told.samples]

    @property
    def in_flight(self) -> int:
        """Requests in flight, as last told."""
        return self._sum("in_flight")

    @property
    def sent(self) -> int:
        """Requests that were sent."""
        return self._sum("sent")

    @property
    def begun(self) -> int:
        """Requests that have begun to be answered."""
        return self._sum("begun")

    @property
    def reads(self) -> int:
        """Pieces of responses that were read."""
        return self._sum("reads")

    @property
    def hopeless(self) -> bool:
        """Whether a worker has stopped since its requests fail."""
        return any(told.progress.get("hopeless") for told in self._told.values())

    @property
    def finished(self) -> bool:
        """Whether no worker has anything in flight or to send."""
        return self._each("finished")

    @property
    def held(self) -> tuple[Span, ...]:
        """When any worker was held up; workers tell of it once the load is closed."""
        return joined((begin, end) for one in self.footprints() for begin, end in one.held)

    @property
    def due(self) -> float:
        """When it is to be served again, to hear how far the workers are."""
        return time.perf_counter() + self._every

    def begin(self, speed: float) -> float:
        """Share the load out, and begin it everywhere at one moment; when that is."""
        one = self._server
        server: dict[str, Any] = {"url": one.url, "model": one.model, "api_key": one.api_key}
        server["access"] = asdict(one.access)
        self._crew.tell(
            "load",
            load=self._load,
            workload=self._workload.plain(),
            server=server,
            salt=self._script.salt,
            lines=self._script.lines,
            words=self._script.words_per_token,
            after=self._script.count,
        )
        users = len(self._told) if self._workload.open_loop else self._workload.streams
        self._crew.order("users", load=self._load, users=users)
        self._until(lambda: self._users, READY, "Locust did not spread its users")
        self._crew.tell("open")
        self._until(lambda: self._all("users"), READY, "not every worker is ready")
        self._given([told.users or 0 for told in self._told.values()], users)
        self._clocks("before")
        return self._go(speed)

    def serve(self, now: float) -> None:
        """Take in what the workers have told."""
        del now
        self._hear()

    def read(self) -> None:
        """Have all records of what has ended."""
        for told in self._told.values():
            told.read = None
        self._crew.tell("read")
        self._until(lambda: self._all("read"), RECORDS, "not every worker gave its records")
        self._complete("read", [told.read or 0 for told in self._told.values()])

    def stop(self) -> None:
        """Send no more. Returns once every worker has stopped, so that `in_flight` tells of all there is."""
        self._crew.tell("stop")
        self._until(lambda: self._each("stopped"), READY, "not every worker stopped")

    def steady(self) -> None:
        """The scored window begins."""
        self._crew.tell("steady")

    def ends(self) -> None:
        """The scored window ends: to the workers that is `stop`."""

    def finish(self, give_up: str) -> None:
        """Give up what is still in flight, have all records, and count them."""
        self._crew.tell("close", why=give_up)
        self._until(lambda: self._all("closed"), RECORDS, "not every worker gave its last records")
        self._complete("sent", [int((told.closed or {})["sent"]) for told in self._told.values()])
        self._clocks("after")

    def abandon(self) -> None:
        """Nothing more of this load is sent or waited for, however far it came."""
        if not self._all("closed"):
            with suppress(Spoiled):
                self._crew.tell("drop")

    def footprints(self) -> list[Footprint]:
        """What each worker did; nothing of a load that was not closed."""
        return [
            Footprint(**{**told.closed["footprint"], "who": self._crew.names[worker]})
            for worker, told in self._told.items()
            if told.closed is not None
        ]

    def doubts(self, seconds: float) -> list[Doubt]:
        """Whether clocks differ by too much for what is counted in parts of a window of so many seconds."""
        pairs = [(told.before, told.after) for told in self._told.values()]
        worst = max((uncertainty(one, two) for one, two in pairs if one and two), default=0.0)
        if worst <= APART * seconds:
            return []
        text = f"the workers' clocks are known to {worst * 1e3:.0f} ms in a window of {seconds:.3g} s"
        return [Doubt(text, ("aggregate-tok-s", "requests-s", "goodput"))]

    def _go(self, speed: float) -> float:
        self._every = max(LEAST_EVERY, EVERY / speed, PER_WORKER * len(self._told))
        offsets = [told.before or Offset() for told in self._told.values()]
        begin = time.perf_counter() + LEAD + TRIPS * max(one.error for one in offsets)
        users = [told.users or 0 for told in self._told.values()]
        parts = shares(self._workload, users)
        for rank, (worker, part, offset) in enumerate(zip(self._told, parts, offsets, strict=True)):
            self._crew.tell(
                "go",
                worker,
                begin=begin + offset.ahead,
                speed=speed,
                turns=[rank, len(parts)],
                part=asdict(part),
                kept=-(-KEPT // len(parts)),
                every=self._every,
            )
        while time.perf_counter() < begin:
            self._hear(begin - time.perf_counter())
        return begin

    def _given(self, users: Sequence[int], wanted: int) -> None:
        """Whether Locust gave as many users as were asked for; in an open loop every worker has its one."""
        if sum(users) != wanted or (self._workload.open_loop and 0 in users):
            raise Spoiled(f"Locust gave {sum(users)} of {wanted} users to its workers: {list(users)}")

    def _clocks(self, when: str) -> None:
        self._crew.order("clocks", load=self._load, of=list(self._told))
        self._until(
            lambda: self._all(when),
            READY,
            "the workers' clocks were not reported",
            lambda one: self._set(when, one),
        )

    def _set(self, when: str, one: dict[str, Any]) -> None:
        if one["is"] == "clocks" and one["load"] == self._load:
            for worker, rounds in one["rounds"].items():
                if not rounds:
                    raise self._crew.lost(self._crew.names[worker], "it does not answer")
                setattr(self._told[worker], when, offset_of(rounds))

    def _hear(self, longest: float = 0.0, also: Callable[[dict[str, Any]], None] | None = None) -> None:
        for one in self._crew.news(longest):
            if one["is"] == "users" and one["load"] == self._load:
                self._users = True
            elif one["is"] == "worker" and one["load"] == self._load:
                self._from(one["worker"], one)
            elif also is not None:
                also(one)

    def _from(self, worker: str, one: dict[str, Any]) -> None:
        told, what = self._told[worker], one["what"]
        if what == "progress":
            told.progress = one
        elif what == "ready":
            told.users = one["users"]
        elif what == "samples":
            if one["first"] != len(told.samples):
                raise self._crew.lost(
                    self._crew.names[worker], f"its records {len(told.samples)} to {one['first']} never came"
                )
            told.samples += [Sample.of(row) for row in one["samples"]]
        elif what == "read":
            told.read = one["count"]
        elif what == "closed":
            told.closed = one
        elif what == "failed":
            raise Spoiled(
                f"{self._crew.names[worker]} could not send its part: {one['why']}{self._own(worker)}"
            )

    def _own(self, worker: str) -> str:
        """Why a worker elsewhere may not reach the server, where its address says so."""
        route = route_to(self._server.url, self._server.access)
        if " on " not in self._crew.names[worker] or not (route.unix or is_loopback(route.host)):
            return ""
        return (
            f"; {self._server.url} is an address of this machine alone: verify the server by one that "
            "others reach, with --vllm-url=http://HOST:PORT"
        )

    def _complete(self, what: str, counts: Sequence[int]) -> None:
        """Whether every record that a worker counts is here."""
        for (worker, told), count in zip(self._told.items(), counts, strict=True):
            if len(told.samples) != count:
                short = f"{len(told.samples)} records of {count} {what}"
                raise self._crew.lost(self._crew.names[worker], short)

    def _all(self, name: str) -> bool:
        return all(getattr(told, name) is not None for told in self._told.values())

    def _each(self, name: str) -> bool:
        return all(told.progress.get(name) for told in self._told.values())

    def _sum(self, name: str) -> int:
        return sum(told.progress.get(name, 0) for told in self._told.values())

    def _until(
        self,
        done: Callable[[], bool],
        patience: float,
        what: str,
        also: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        deadline = time.perf_counter() + patience
        while not done():
            if time.perf_counter() > deadline:
                raise Spoiled(f"{what} within {patience:g} s")
            self._hear(0.1, also)


def shares(workload: Workload, users: Sequence[int]) -> list[Part]:
    """What each worker sends, by the streams that it has; no request is sent twice, and none is left out.

    Args:
        workload: the whole.
        users: streams of each worker; in an open loop one each, and requests are dealt out in turn.
    """
    total, count = sum(users), len(users)
    limit = workload.requests
    befores = list(accumulate(users, initial=0))
    if limit is None:
        quotas: list[int | None] = [None] * count
    elif workload.open_loop:
        quotas = [(limit - rank + count - 1) // count for rank in range(count)]
    else:
        quotas = [limit * befores[at + 1] // total - limit * befores[at] // total for at in range(count)]
    return [Part(users[at], befores[at], total, quotas[at]) for at in range(count)]
