"""The recording phase: every planned exchange once, as many at a time as the server batches."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from pytest_vllm.declare.raised import raised_at
from pytest_vllm.run.apart import Apart
from pytest_vllm.run.aside import Scribe
from pytest_vllm.run.ends import Ends
from pytest_vllm.run.heldup import TRIES, broke, busy, held_for, repeatable, undone, usable
from pytest_vllm.run.lag import Lag
from pytest_vllm.run.needs import unmet
from pytest_vllm.run.order import Queue, longest_chain, stages
from pytest_vllm.run.pace import RecordingReport, Span, aggregate_rate, expected_tokens, generated_tokens
from pytest_vllm.run.size import Sizes
from pytest_vllm.run.vigil import Patience, Vigil
from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import NotRun, Recording, Request, Undecided
from pytest_vllm.wire.scrape import Scraper

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from pytest_vllm.run.plan import Planned
    from pytest_vllm.run.vigil import Still
    from pytest_vllm.wire.client import WireClient
    from pytest_vllm.wire.server import Server
    from pytest_vllm.wire.store import RecordingStore

    Ask = Callable[[Planned, Request], Awaitable[Recording]]

UNSENT = Request("", "")


async def record_all(
    server: Server,
    plan: Sequence[Planned],
    client: WireClient,
    *,
    concurrency: int,
    store: RecordingStore,
    on_done: Callable[[Planned, Recording, int, int], None],
    build: Callable[[Planned, Mapping[str, Recording]], Request],
    scraper: Scraper | None = None,
    died: Callable[[], str] = str,
    patience: Patience | None = None,
    told: Callable[[], str] = str,
) -> RecordingReport:
    """Record the plan.

    Dependencies come first, longest chains before short ones, long answers before short ones; then each crowd
    at once; exchanges that want the server for themselves come last, one by one. What cannot be sent is
    recorded too, with the reason as its error.

    Args:
        server: the server that is recorded, for messages.
        plan: what to record; keys are unique.
        client: sends the requests.
        concurrency: how many exchanges may be open at once.
        store: where recordings go; dependencies outside the plan are read from it.
        on_done: called once a recording is on disk, in another thread and in order, with (planned,
            recording, how many are done, how many there are).
        build: makes the request of an exchange, given the recordings it comes after by key. What it raises
            becomes the recording's error.
        scraper: waits for idleness and scrapes `/metrics`; by default one over `client`.
        died: how the server ended, in words, by its launcher; empty while it knows of no end.
        patience: how long a server that gives no answers is waited for.
        told: why this run is to end, in words; empty while it is not.

    Raises ValueError when the plan has a cycle or names a dependency that nobody recorded.
    """
    together, crowds, one_by_one = stages(plan, store.keys())
    recorder = _Recorder(
        server=server,
        client=client,
        store=store,
        on_done=on_done,
        build=build,
        scraper=scraper or Scraper(client),
        sizes=Sizes(server, client),
        vigil=Vigil(server, client, died, max(1, concurrency), patience or Patience(), told=told),
        ends=Ends(len(plan)),
        apart=Apart(server),
        total=len(plan),
        concurrency=max(1, concurrency),
    )
    began = time.perf_counter()
    async with recorder.lag, recorder.scribe:
        watching = asyncio.create_task(recorder.vigil.watch(lambda: bool(recorder.waiting)))
        try:
            if any(planned.spec.metrics for planned in one_by_one):
                recorder.first_scrape = await recorder.scraper.scrape()
            for some in (together, *crowds):
                await recorder.together(some, watching)
            middle = time.perf_counter()
            for planned in one_by_one:
                await recorder.alone(planned, watching)
        finally:
            watching.cancel()
            await recorder.vigil.over(cancel=True)
        recorder.explain()
    taken = middle - began, time.perf_counter() - middle
    return recorder.report([*together, *chain.from_iterable(crowds)], one_by_one, *taken)


@dataclass
class _Recorder:
    server: Server
    client: WireClient
    store: RecordingStore
    on_done: Callable[[Planned, Recording, int, int], None]
    build: Callable[[Planned, Mapping[str, Recording]], Request]
    scraper: Scraper
    sizes: Sizes
    vigil: Vigil
    ends: Ends
    apart: Apart
    total: int
    concurrency: int
    first_scrape: str | None = None
    lag: Lag = field(default_factory=Lag)
    scribe: Scribe = field(default_factory=Scribe)
    #: What the scribe has still to write: the store does not know of it yet.
    _unwritten: dict[str, Recording] = field(default_factory=dict)
    #: Seconds of each exchange that is done with.
    _seconds: dict[str, float] = field(default_factory=dict)
    _spans: dict[str, Span] = field(default_factory=dict)
    #: What is being recorded.
    waiting: dict[asyncio.Task[Recording], Planned] = field(default_factory=dict)
    _not_idle: list[str] = field(default_factory=list)
    #: Whether an exchange was not read to its end: the server may still be busy with it.
    _broken_off: bool = False

    @property
    def stopped(self) -> str:
        """Why nothing more is sent; empty while it is."""
        return self.vigil.stopped

    async def together(self, plan: Sequence[Planned], watching: asyncio.Task[None]) -> None:
        """Record these, as many at once as allowed. The plan is in order."""
        queue = Queue(plan)
        self._prepare(queue, queue.free())
        running = self.waiting
        try:
            while queue or running:
                while queue and len(running) < self.concurrency:
                    planned, request = queue.pop(self.ends.doubted)
                    task = asyncio.create_task(self._unheld(planned, request, self._send))
                    running[task] = planned
                for task in await self._finished(watching):
                    planned = running.pop(task)
                    self._keep(planned, self._came(task, planned))
                    self._prepare(queue, queue.free(planned.key))
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _finished(self, watching: asyncio.Task[None]) -> list[asyncio.Task[Recording]]:
        """What of that which is being recorded has ended; all of it, given up, once nothing more is sent."""
        some = {*self.waiting, *(() if watching.done() else (watching,))}
        await asyncio.wait(some, return_when=asyncio.FIRST_COMPLETED)
        if self.stopped:
            for task in self.waiting:
                task.cancel()
            await asyncio.wait(self.waiting)
        return [task for task in self.waiting if task.done()]

    def _came(self, task: asyncio.Task[Recording], planned: Planned) -> Recording:
        """What a task recorded; that it was given up, where it was cancelled before it had anything."""
        if not (task.cancelled() and self.stopped):
            return task.result()
        lost = Recording(planned.key, UNSENT, sent=time.time())
        return lost.with_response(error=f"given up: {self.stopped}", failure=Failure.GIVEN_UP)

    def _prepare(self, queue: Queue, freed: Sequence[Planned]) -> None:
        """Build the requests of what waits for nothing more; what cannot be built is done with."""
        for planned in freed:
            request = self._request(planned)
            if isinstance(request, Request):
                queue.push(planned, request, expected_tokens(request))
            else:
                self._keep(planned, request)
                self._prepare(queue, queue.free(planned.key))

    async def alone(self, planned: Planned, watching: asyncio.Task[None]) -> None:
        """Record this while nothing else runs, with the metrics around it where they are wanted."""
        request = self._request(planned)
        if isinstance(request, Recording):
            self._keep(planned, request)
        elif self.stopped:
            self._keep(planned, await self._send(planned, request))
        elif size := await self._too_big(planned, request):  # before any scrape
            self._keep(planned, self._unfit(planned, size, request))
        else:
            task = asyncio.create_task(self._unheld(planned, request, self._undisturbed))
            self.waiting[task] = planned
            try:
                while not await self._finished(watching):
                    pass
            finally:
                del self.waiting[task]
                task.cancel()
            self._keep(planned, self._came(task, planned))

    async def _unheld(self, planned: Planned, request: Request, record: Ask) -> Recording:
        """Record an exchange, and again where what came may be the doing of this process.

        A client that was held up let time limits pass, was given up by the other side, left a stream later
        than planned. What can't be done in three times says nothing of the server.
        """
        tries = TRIES if repeatable(request) else 1
        for _ in range(tries):
            begin = time.perf_counter()
            recording = await record(planned, request)
            held = held_for(recording, self.lag, begin, time.perf_counter())
            if not held:
                return await self._awake(planned, request, record, recording, begin)
            self._broken_off = True
            if self.stopped:
                break
        return recording if usable(recording) else undone(recording, held, tries)

    async def _awake(
        self, planned: Planned, request: Request, record: Ask, recording: Recording, begin: float
    ) -> Recording:
        """A recording as it came, or once more where the server had stood still and cut it by that."""
        if not await self._cut(recording, begin) or not repeatable(request):
            return recording
        begin = time.perf_counter()
        again = await record(planned, request)
        still = await self._cut(again, begin)
        return busy(again, still.strain.text) if still is not None and still.starved else again

    async def _cut(self, recording: Recording, begin: float) -> Still | None:
        """The time in which the server stood still that cut this exchange; None where it is whole."""
        try:
            await self.vigil.saw(recording)
        except asyncio.CancelledError:
            if not self.stopped:
                raise
        if self.stopped or not broke(recording):
            return None
        return self.vigil.stood_still(begin, time.perf_counter())

    async def _undisturbed(self, planned: Planned, request: Request) -> Recording:
        scraper = self.scraper
        before = None
        if await self.vigil.over():  # what it asked is counted too, once it is answered
            scraper.settled = False
        if scraper.settled and planned.spec.metrics:
            before = await scraper.scrape()
        elif planned.spec.metrics or self._broken_off:
            before = await scraper.when_idle(self.first_scrape, self._generated())
        self._broken_off = False
        idle = scraper.settled
        recording = await self._send(planned, request)
        scraper.settled = False
        if planned.spec.metrics:
            after = await scraper.when_idle(before, generated_tokens(recording))
            recording = recording.with_response(metrics_before=before, metrics_after=after)
            if scraper.exists and not (idle and scraper.settled):
                self._not_idle.append(planned.key)
        return recording

    def report(
        self, together: Sequence[Planned], one_by_one: Sequence[Planned], concurrent: float, alone: float
    ) -> RecordingReport:
        """Where the time went."""
        seconds = self._seconds
        exclusive = sum(seconds[planned.key] for planned in one_by_one)
        return RecordingReport(
            concurrent_seconds=concurrent,
            alone_seconds=alone,
            exchange_seconds=seconds,
            longest_chain_seconds=longest_chain(together, seconds) + exclusive,
            generated_tokens=self._generated(),
            aggregate_rate=aggregate_rate([self._spans[p.key] for p in together if p.key in self._spans]),
            not_idle=tuple(self._not_idle),
            stopped=self.stopped,
            unended=self.ends.streams(),
            stills=tuple(one.text for one in self.vigil.stills),
        )

    def _generated(self) -> int:
        return sum(span.tokens for span in self._spans.values())

    def _request(self, planned: Planned) -> Request | Recording:
        """The request of an exchange, or the recording that says why there is none."""
        why = ""
        earlier = {key: self._unwritten.get(key) or self.store.get(key) for key in planned.after.values()}
        for key, recording in earlier.items():
            if recording.failure is Failure.UNFIT:
                return self._unfit(planned, recording.error)
            if recording.status is None:
                why = why or f"{key} got no response"
        try:
            if not why:
                request = self.build(planned, earlier)
                lacks = "" if planned.spec.anyway else unmet(request, self.server)
                return self._unfit(planned, f"not sent: {lacks}", request) if lacks else request
        except NotRun as reason:
            return self._unfit(planned, f"not sent: {reason}")
        except Undecided as reason:
            why = str(reason)
        except Exception as error:  # noqa: BLE001 - a builder is a suite author's code; the run goes on
            file = planned.spec.build.__code__.co_filename
            why = f"its request could not be built: {raised_at(error, file)}"
        error_text = self.client.redactor.text(f"not sent: {why}")
        return Recording(planned.key, UNSENT, sent=time.time(), error=error_text, failure=Failure.NOT_SENT)

    def _unfit(self, planned: Planned, why: str, request: Request = UNSENT) -> Recording:
        said, shown = self.client.redactor.text(why), self.client.redactor.request(request)
        return Recording(planned.key, shown, sent=time.time(), error=said, failure=Failure.UNFIT)

    async def _send(self, planned: Planned, request: Request) -> Recording:
        unsent = Recording(planned.key, self.client.redactor.request(request), sent=time.time())
        if why := self.stopped or self.ends.why_not(request):
            return unsent.with_response(error=f"not sent: {why}", failure=Failure.STOPPED)
        start = time.perf_counter()
        try:
            await self.vigil.clear()
            if self.stopped:
                return unsent.with_response(error=f"not sent: {self.stopped}", failure=Failure.STOPPED)
            if not planned.spec.alone and (size := await self._too_big(planned, request)):
                return self._unfit(planned, size, request)
            async with self.apart.kept(request):
                start = time.perf_counter()
                with self.ends.awaited(request):
                    recording = await self.sizes.taken(planned.key, request)
                end = time.perf_counter()
            size = self.sizes.kept_out(recording)
            size = size or ("" if planned.spec.anyway else await self.sizes.refused(recording))
        except asyncio.CancelledError:
            if not (cut := self.stopped or self.ends.why_not(request)):
                raise
            taken = time.perf_counter() - start
            why = f"given up: {cut}"
            return unsent.with_response(error=why, failure=Failure.GIVEN_UP, seconds=round(taken, 6))
        self._spans[planned.key] = Span(start, end, generated_tokens(recording))
        self.ends.saw(recording)
        return recording.with_response(status=None, error=size, failure=Failure.UNFIT) if size else recording

    async def _too_big(self, planned: Planned, request: Request) -> str:
        """Why a request is not sent to a server of this size; empty when it is."""
        size = "" if planned.spec.anyway else await self.sizes.too_big(request)
        return f"not sent: {size}" if size else ""

    def explain(self) -> None:
        """Let what failed since the last answer say that the server was gone: it is no finding of its own."""
        why = f"given up: {self.stopped}"
        for key in self.vigil.unanswered if self.stopped else ():
            self.scribe.give(lambda key=key: self._explain(key, why))  # type: ignore[misc]

    def _explain(self, key: str, why: str) -> None:
        if key in self._seconds and (found := self.store.get(key)).failure is not Failure.STOPPED:
            self.store.save(found.with_response(status=None, error=why, failure=Failure.GIVEN_UP))

    def _keep(self, planned: Planned, recording: Recording) -> None:
        self._seconds[planned.key] = recording.seconds
        self._broken_off = self._broken_off or recording.aborted or bool(recording.error)
        self._unwritten[planned.key] = recording
        done = len(self._seconds)

        def write() -> None:
            self.store.save(recording)
            del self._unwritten[planned.key]
            self.on_done(planned, recording, done, self.total)

        self.scribe.give(write)
