"""What is done with a server that answers, in order: probe, record, measure, a second opinion, restart.

Each step takes the server, what is known of it and what is wanted, and returns what is known afterwards.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from pytest_vllm.launch.signals import noting
from pytest_vllm.run.aside import Latest
from pytest_vllm.run.bench import REHEARSAL, measure_all, second_opinion
from pytest_vllm.run.plan import (
    afterwards,
    build,
    first_of,
    measures_for,
    plan_for,
    programs_of,
    with_what_they_need,
)
from pytest_vllm.run.probe import probe
from pytest_vllm.run.recorder import record_all
from pytest_vllm.run.restart import restart as start_again
from pytest_vllm.run.state import ServerState
from pytest_vllm.run.vigil import Vigil
from pytest_vllm.wire.client import WireClient
from pytest_vllm.wire.store import RecordingStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_vllm.declare.measurements import PlannedMeasurement
    from pytest_vllm.launch.protocol import Restartable
    from pytest_vllm.run.booted import BootedServer
    from pytest_vllm.run.context import Demand
    from pytest_vllm.run.pace import RecordingReport
    from pytest_vllm.run.plan import Planned
    from pytest_vllm.wire.recording import Recording
    from pytest_vllm.wire.server import Server

DEFAULT_CONCURRENCY = 16
#: Where the answer of `/openapi.json` is kept in a server's folder, and how much of one.
DESCRIPTION, LARGEST_DESCRIPTION = "openapi.json", 8 * 2**20
#: And at a simulator, whose answers are mostly waited for.
REHEARSED_CONCURRENCY = 32
#: Measurements with the soak tier's own budget, and what is recorded once more after them.
SOAK, AGAIN = "soak.", ("canary.", "tools.")
#: How many times as long as other loads a soak takes on a simulator, so that enough is read meanwhile.
REHEARSED = 4


def probed(booted: BootedServer, demand: Demand) -> ServerState:
    """What the server is and can do; what is to come before everything else is sent meanwhile."""
    started, profile = time.monotonic(), booted.profile
    plan = first_of(demand.exchanges) if profile.server.kind.starts else []

    async def first(server: Server) -> None:
        state = ServerState(profile, server, booted.folder)
        await _record(booted, state, plan, RecordingStore(booted.folder / "recordings"), 1)

    def described(answer: Recording) -> None:
        if answer.status == 200 and len(answer.body) <= LARGEST_DESCRIPTION:
            (booted.folder / DESCRIPTION).write_bytes(answer.body)

    found = asyncio.run(
        probe(
            booted.url,
            profile,
            api_key=booted.api_key,
            first=first if plan else None,
            described=described,
            ended=booted.ended,
        )
    )
    booted.run.progress.probed(found, profile.expect.capabilities)
    booted.run.spent("probe", started, profile=profile.name)
    booted.gauges.scrape(found.url, found.api_key, found.access)
    facts = booted.run.redactor.value(dict(booted.handle.facts()))
    return ServerState(profile, found, booted.folder, facts, booted.boot_phases)


def recorded(booted: BootedServer, state: ServerState, demand: Demand) -> ServerState:
    """Record every exchange that is wanted and that the server can answer."""
    started = time.monotonic()
    plan = plan_for(demand.exchanges, state.server)
    most = REHEARSED_CONCURRENCY if state.server.simulated else DEFAULT_CONCURRENCY
    limit = booted.run.concurrency or min(state.server.max_num_seqs or 8, most)
    store = RecordingStore(state.folder / "recordings")
    with noting() as signals:

        def told() -> str:
            return f"{signals[0]} ended the run" if signals else ""

        report = asyncio.run(_record(booted, state, plan, store, limit, told=told)) if plan else None
        later = None
        follows = any(one.planned.spec.afterwards for one in demand.exchanges.values())
        if follows and not (signals or booted.death() or (report and report.stopped)):
            known = [store.get(key) for key in store.keys()]  # noqa: SIM118 - no mapping
            more = afterwards(demand.exchanges, state.server, known)
            later = asyncio.run(_record(booted, state, more, store, limit, told=told))
    booted.run.ended.extend(signals)
    reports = [one for one in (report, later) if one]
    stopped = "" if signals else next((one.stopped for one in reports if one.stopped), "")
    died = _died(booted, state, stopped)
    booted.unended = next((why for one in reports for why in one.unended), "")
    for still in [still for one in reports for still in one.stills]:
        booted.run.progress.say(still)
    detail = report.as_detail() if report else {}
    name = state.profile.name
    booted.run.spent("record", started, profile=name, exchanges=len(plan), concurrency=limit, **detail)
    return replace(state, died=died)


def with_clients(booted: BootedServer, state: ServerState, demand: Demand) -> ServerState:
    """Let real clients go through their steps, one after the other, where a check wants to see them."""
    plan = [] if state.died else programs_of(demand.exchanges, state.server)
    if not plan:
        return state
    from pytest_vllm.run.clients import run_clients  # noqa: PLC0415 - few runs have any

    started, run = time.monotonic(), booted.run
    detail = run_clients(state, plan, run.redactor, run.progress)
    run.spent("clients", started, profile=state.profile.name, **detail)
    return replace(state, died=booted.death())


def measured(booted: BootedServer, state: ServerState, demand: Demand) -> ServerState:
    """Measure what is wanted, one load after the other, with the server to itself."""
    started, run = time.monotonic(), booted.run
    plan = [] if state.died else measures_for(demand.measurements, state.server)
    if not plan:
        return state
    long = [one for one in plan if one.spec.id.startswith(SOAK)]
    short = [one for one in plan if one not in long]
    asked = run.asked or bool(state.profile.defects)
    detail: dict[str, Any] = {}
    if short:
        detail = measure_all(
            state,
            short,
            run.progress,
            run.rootdir,
            tier=run.tier,
            asked=asked,
            gone=lambda: asyncio.run(_gone(booted, state)),
            stopped=booted.unended,
        )
    if long and not detail.get("stopped"):
        detail = {**detail, **_soak(booted, state, long, demand)}
    died = _died(booted, state, "" if booted.unended else str(detail.get("stopped", "")))
    run.spent("measure", started, profile=state.profile.name, measurements=len(plan), **detail)
    return replace(state, died=died)


def benched(booted: BootedServer, state: ServerState, demand: Demand) -> ServerState:  # noqa: ARG001 - a step
    """Run `vllm bench serve` where the server runs, if the profile asks for a second opinion."""
    started = time.monotonic()
    if state.profile.measure.vllm_bench and not state.died:
        detail = second_opinion(state, booted.handle, booted.run.progress)
        booted.run.spent("vllm bench serve", started, profile=state.profile.name, **detail)
    return state


def restarted(booted: BootedServer, state: ServerState, demand: Demand) -> ServerState:
    """Stop the server and start it again, where a check wants to see what it is like then."""
    started, run = time.monotonic(), booted.run
    plan = plan_for(demand.exchanges, state.server, restarted=True)
    if not plan or state.died or not state.profile.server.kind.starts:
        return state
    run.progress.phase("restart", "stopping")
    seen, fresh = start_again(
        cast("Restartable", booted.handle),
        state,
        evict=run.evict_tenants,
        enter=booted.stack.enter_context,
        say=run.progress.say,
        on_progress=run.progress.boot,
    )
    seen.write(state.folder)
    if fresh is None or fresh.url is None:
        state = replace(state, live=False)
    else:
        booted.replaced_by(fresh)
        state = replace(state, server=replace(state.server, url=fresh.url))
        asyncio.run(_record(booted, state, plan, RecordingStore(state.folder / "recordings"), 1))
    run.spent("restart", started, profile=state.profile.name, exchanges=len(plan))
    return state


def _died(booted: BootedServer, state: ServerState, stopped: str) -> str:
    """How the server ended: of one that runs elsewhere the exchanges say more than its port."""
    return booted.death() or stopped if state.profile.server.kind.starts else stopped or booted.death()


async def _gone(booted: BootedServer, state: ServerState) -> str:
    """Why the server is gone or hangs, asked now; empty while it lives."""
    async with WireClient(state.server, booted.run.redactor) as client:
        return await Vigil(state.server, client, booted.death).gone()


def _soak(
    booted: BootedServer, state: ServerState, plan: Sequence[PlannedMeasurement], demand: Demand
) -> dict[str, Any]:
    """Load the server for long, then record once more what shows whether it is still itself."""
    measure, run = state.profile.measure, booted.run
    longer = measure.model_copy(update={"rehearsal": (measure.rehearsal or REHEARSAL) * REHEARSED})
    soaked = replace(state, profile=state.profile.model_copy(update={"measure": longer}))
    booted.gauges.phase = "soak"
    try:
        detail = measure_all(soaked, plan, run.progress, run.rootdir, tier="soak")
    finally:
        booted.gauges.phase = ""
    again = with_what_they_need(plan_for(demand.exchanges, state.server), AGAIN)
    if again:
        limit = min(state.server.max_num_seqs or 8, 8)
        asyncio.run(_record(booted, state, again, RecordingStore(state.folder / "recordings-again"), limit))
    return {**detail, "again": len(again)}


async def _record(
    booted: BootedServer,
    state: ServerState,
    plan: Sequence[Planned],
    store: RecordingStore,
    limit: int,
    *,
    told: Callable[[], str] = str,
) -> RecordingReport:
    server, patience, progress = state.server, state.profile.record, booted.run.progress
    with Latest(progress.recorded) as show:
        client = WireClient(server, booted.run.redactor, gap=patience.silence, exchange=patience.timeout)
        async with client:
            return await record_all(
                server,
                plan,
                client,
                concurrency=limit,
                store=store,
                on_done=lambda _planned, _recording, done, total: show(done, total),
                build=lambda planned, done: build(planned, server, done),
                # of somebody else's server only its answers tell
                died=booted.death if server.kind.starts else str,
                told=told,
            )
