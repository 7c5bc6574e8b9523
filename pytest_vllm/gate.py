"""Boots, probes and records the servers of a run. Lives in the controlling process only."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, cast

from pytest_vllm.gauges import gauges_for
from pytest_vllm.launch.guard import guarded
from pytest_vllm.launch.protocol import BootError, LaunchContext
from pytest_vllm.launch.registry import launcher_for
from pytest_vllm.launch.wait import wait_ready
from pytest_vllm.measuring import REHEARSAL, measure_all, second_opinion
from pytest_vllm.planning import build, first_of, measures_for, plan_for, with_what_they_need
from pytest_vllm.preflight.evict import make_room, shares_memory
from pytest_vllm.probe import probe
from pytest_vllm.restart import OURS, restart
from pytest_vllm.runrecord import Phase
from pytest_vllm.runstate import ServerState, write_state
from pytest_vllm.serverlog import ServerLog
from pytest_vllm.wire.client import WireClient
from pytest_vllm.wire.record import record_all
from pytest_vllm.wire.store import RecordingStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_vllm.gauges import Gauges
    from pytest_vllm.launch.protocol import Handle, Restartable
    from pytest_vllm.measurements import PlannedMeasurement
    from pytest_vllm.planning import Wanted, WantedMeasurement
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.report.progress import Progress
    from pytest_vllm.session import GateSession
    from pytest_vllm.target import Server
    from pytest_vllm.wire.pace import RecordingReport
    from pytest_vllm.wire.record import Planned

DEFAULT_CONCURRENCY = 16
#: And at a simulator, whose answers are mostly waited for.
REHEARSED_CONCURRENCY = 32
#: Measurements with the soak tier's own budget, and what is recorded once more after them.
SOAK, AGAIN = "soak.", ("canary.", "tools.")
#: How many times as long as other loads a soak takes on a simulator, so that enough is read meanwhile.
REHEARSED = 4


class Gate:
    """The servers of a run: opened one by one, closed whatever happens."""

    def __init__(self, session: GateSession, progress: Progress) -> None:
        """Nothing is started yet."""
        self.run_id, self.folder, self.options = session.run_id, session.folder, session.options
        self.profiles, self.progress = session.profiles, progress
        self.states: dict[str, ServerState] = {}
        self.phases: list[Phase] = []
        self.redactor, self.rootdir = session.redactor, session.rootdir
        self._open: dict[str, tuple[ExitStack, Handle, ServerLog]] = {}
        self._gauges: dict[str, Gauges] = {}

    def open(
        self,
        name: str,
        wants: Mapping[str, Wanted],
        measures: Mapping[str, WantedMeasurement] | None = None,
    ) -> ServerState:
        """Boot the profile's server, find out what it can do, record and measure what is wanted."""
        profile = self.profiles[name]
        folder = self.folder / _safe(name)
        folder.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        context = LaunchContext(
            self.run_id,
            folder,
            os.getpid(),
            tuple(profile.defects),
            dict(os.environ),
            keep=self.options.keep,
        )
        stack = ExitStack()
        try:
            guard = stack.enter_context(guarded(context, self.folder.parent))
            for orphan in guard.reaped:
                self.progress.say(f"reaped what a dead run had left: {orphan.kind} {orphan.name}")
            profile = self._staged(profile, folder, stack)
            if shares_memory(profile):
                make_room(self.progress.say, evict=self.options.evict_tenants)
            gauges = gauges_for(profile, folder, self.rootdir, tier=self.options.tier)
            stack.callback(gauges.close)
            self._gauges[name] = gauges
            handle = stack.enter_context(guard.start(launcher_for(profile.server.launcher), profile))
            gauges.watch(handle)
            self.progress.phase("boot", handle.description)
            log = ServerLog(handle, folder / "server.log", self.redactor.text)
            stack.callback(log.close)
            self._open[name] = (stack, handle, log)
            boot = wait_ready(handle, profile.boot, self.progress.boot)
            self.progress.booted(boot)
            self._phase("boot", started, profile=name)
            server = self._probe(handle, profile, wants)
            gauges.scrape(server.url, server.api_key)
        except BaseException as error:
            self._open.pop(name, None)
            stack.close()
            gauged = self._gauges.get(name)  # none yet where the model could not be made
            if isinstance(error, BootError) and gauged and (tripped := gauged.tripped):
                raise _out_of_memory(tripped, error) from error
            raise
        self.states[name] = ServerState(
            profile, server, folder, self.redactor.value(dict(handle.facts())), tuple(boot.phases)
        )
        self._record(name, wants)
        self._measure(name, measures or {}, wants)
        self._ask_bench(name)
        self._restart(name, wants)
        return self.states[name]

    def _staged(self, profile: Profile, folder: Path, stack: ExitStack) -> Profile:
        """A scripted server's profile with the model that is made for it; removed once the server is gone."""
        if not profile.server.scripted:
            return profile
        from pytest_vllm.scripted.stage import staged  # noqa: PLC0415 - few runs are scripted

        stage = folder.absolute() / "scripted"
        if not self.options.keep:
            stack.callback(shutil.rmtree, stage, ignore_errors=True)
        try:
            return staged(profile, stage)
        except LookupError as error:
            others = "pick others: --vllm-tool-parser=NAME --vllm-reasoning-parser=NAME"
            raise BootError(str(error.args[0]), try_=(others,)) from error

    def _probe(self, handle: Handle, profile: Profile, wants: Mapping[str, Wanted]) -> Server:
        started = time.monotonic()
        if handle.url is None:
            raise BootError("the server is ready but published no port", evidence=(handle.description,))
        plan = first_of(wants) if profile.server.launcher in OURS else []
        folder = self.folder / _safe(profile.name)

        async def first(server: Server) -> None:
            state = ServerState(profile, server, folder)
            await self._record_all(state, plan, RecordingStore(folder / "recordings"), 1)

        server = asyncio.run(
            probe(handle.url, profile, api_key=_api_key(profile), first=first if plan else None)
        )
        self.progress.probed(server, profile.expect.capabilities)
        self._phase("probe", started, profile=profile.name)
        return server

    def _record(self, name: str, wants: Mapping[str, Wanted]) -> None:
        state = self.states[name]
        started = time.monotonic()
        plan = plan_for(wants, state.server)
        store = RecordingStore(state.folder / "recordings")
        most = REHEARSED_CONCURRENCY if state.server.simulated else DEFAULT_CONCURRENCY
        limit = self.options.concurrency or min(state.server.max_num_seqs or 8, most)
        report = None
        if plan:
            report = asyncio.run(self._record_all(state, plan, store, limit))
        self._open[name][2].flush()
        died = "" if self._alive(name) else self._how_it_ended(name)
        self.states[name] = replace(state, died=died)
        detail = report.as_detail() if report else {}
        self._phase("record", started, profile=name, exchanges=len(plan), concurrency=limit, **detail)
        self.save()

    async def _record_all(
        self, state: ServerState, plan: Sequence[Planned], store: RecordingStore, limit: int
    ) -> RecordingReport:
        server, patience = state.server, state.profile.record
        async with WireClient(
            server, self.redactor, gap=patience.silence, exchange=patience.timeout
        ) as client:
            return await record_all(
                server,
                plan,
                client,
                concurrency=limit,
                store=store,
                on_done=lambda _planned, _recording, done, total: self.progress.recorded(done, total),
                build=lambda planned, done: build(planned, server, done),
            )

    def _measure(
        self, name: str, measures: Mapping[str, WantedMeasurement], wants: Mapping[str, Wanted]
    ) -> None:
        """Measure what is wanted, one after the other, with the server to itself."""
        state, started = self.states[name], time.monotonic()
        plan = [] if state.died else measures_for(measures, state.server)
        if not plan:
            return
        long = [one for one in plan if one.spec.id.startswith(SOAK)]
        short = [one for one in plan if one not in long]
        asked = bool(self.options.checks or state.profile.defects)
        tier = self.options.tier
        detail = (
            measure_all(state, short, self.progress, self.rootdir, tier=tier, asked=asked) if short else {}
        )
        if long:
            detail = {**detail, **self._soak(state, long, wants)}
        self._open[name][2].flush()
        died = "" if self._alive(name) else self._how_it_ended(name)
        self.states[name] = replace(self.states[name], died=died)
        self._phase("measure", started, profile=name, measurements=len(plan), **detail)
        self.save()

    def _ask_bench(self, name: str) -> None:
        """Run `vllm bench serve` where the server runs, if the profile asks for a second opinion."""
        state, started = self.states[name], time.monotonic()
        if state.profile.measure.vllm_bench and not state.died:
            detail = second_opinion(state, self._open[name][1], self.progress)
            self._phase("vllm bench serve", started, profile=name, **detail)

    def _soak(
        self, state: ServerState, plan: Sequence[PlannedMeasurement], wants: Mapping[str, Wanted]
    ) -> dict[str, Any]:
        """Load the server for long, then record once more what shows whether it is still itself."""
        gauges = self._gauges[state.profile.name]
        gauges.phase = "soak"
        measure = state.profile.measure
        longer = measure.model_copy(update={"rehearsal": (measure.rehearsal or REHEARSAL) * REHEARSED})
        soaked = replace(state, profile=state.profile.model_copy(update={"measure": longer}))
        try:
            detail = measure_all(soaked, plan, self.progress, self.rootdir, tier="soak")
        finally:
            gauges.phase = ""
        again = with_what_they_need(plan_for(wants, state.server), AGAIN)
        if again:
            store = RecordingStore(state.folder / "recordings-again")
            asyncio.run(self._record_all(state, again, store, min(state.server.max_num_seqs or 8, 8)))
        return {**detail, "again": len(again)}

    def _restart(self, name: str, wants: Mapping[str, Wanted]) -> None:
        """Stop the server and start it again, where a check wants to see what it is like then."""
        state, started = self.states[name], time.monotonic()
        plan = plan_for(wants, state.server, restarted=True)
        if not plan or state.died or state.profile.server.launcher not in OURS:
            return
        stack, handle, _ = self._open[name]
        self.progress.phase("restart", "stopping")
        seen, fresh = restart(
            cast("Restartable", handle),
            state,
            evict=self.options.evict_tenants,
            enter=stack.enter_context,
            say=self.progress.say,
            on_progress=self.progress.boot,
        )
        seen.write(state.folder)
        if fresh is None or fresh.url is None:
            self.states[name] = replace(state, live=False)
        else:
            log = ServerLog(fresh, state.folder / "server-restarted.log", self.redactor.text)
            stack.callback(log.close)
            self._open[name] = (stack, fresh, log)
            self._gauges[name].watch(fresh)
            self._gauges[name].scrape(fresh.url, state.server.api_key)
            state = self.states[name] = replace(state, server=replace(state.server, url=fresh.url))
            asyncio.run(self._record_all(state, plan, RecordingStore(state.folder / "recordings"), 1))
        self._phase("restart", started, profile=name, exchanges=len(plan))
        self.save()

    def _alive(self, name: str) -> bool:
        return self._open[name][1].alive()

    def _how_it_ended(self, name: str) -> str:
        if tripped := self._gauges[name].tripped:
            return f"the server was {tripped}"
        ended = self._open[name][1].exit()
        status = "" if ended is None else f" with status {ended.status}"
        return f"the server ended{status} while it was being tested"

    def close(self, name: str) -> None:
        """Stop one server; its log, its exit status and its recordings stay readable."""
        stack, handle, log = self._open.pop(name)
        log.flush()
        if self.options.keep:
            self.progress.say(
                f"left running at {handle.url}, as --vllm-keep asks; `pytest-vllm reap` stops it"
            )
        stack.close()
        self.states[name] = replace(self.states[name], live=False)
        self.save()

    def __enter__(self) -> Self:
        """The gate opens; servers are opened one by one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *exc: object) -> None:
        """Whatever happened inside, every server of this run is stopped."""
        self.close_all()

    def close_all(self) -> None:
        """Stop every server of this run."""
        for name in list(self._open):
            self.close(name)

    def save(self) -> None:
        """Tell the other processes what is known."""
        write_state(self.folder / "run.json", self.states, run_id=self.run_id)

    def _phase(self, name: str, started: float, **detail: object) -> None:
        self.phases.append(Phase(name, round(time.monotonic() - started, 3), detail))


def _out_of_memory(tripped: str, error: BootError) -> BootError:
    return BootError(
        f"the server was {tripped}",
        evidence=error.evidence,
        means="model, KV cache and everything else on this machine do not fit together",
        try_=("lower gpu-memory-utilization in [server.args]", "end what else holds memory"),
        cause="shared-memory-low",
    )


def _api_key(profile: Profile) -> str | None:
    key = profile.server.api_key
    return os.environ.get(key.from_env) if key else None


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)
