"""The step that asks what nobody wrote down: regressions of the profile, and requests at random."""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from pytest_vllm.declare.explorations import ACCOUNT, EXPLORED, Explored, Finding
from pytest_vllm.run.plan import build
from pytest_vllm.run.recorder import record_all
from pytest_vllm.run.regressions import file_of, read, write
from pytest_vllm.run.search import Search
from pytest_vllm.run.trials import Asker
from pytest_vllm.wire.client import WireClient
from pytest_vllm.wire.curl import curl
from pytest_vllm.wire.recording import NotRun
from pytest_vllm.wire.store import RecordingStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_vllm.declare.explorations import Exploration
    from pytest_vllm.run.booted import BootedServer
    from pytest_vllm.run.context import Demand
    from pytest_vllm.run.plan import Planned
    from pytest_vllm.run.search import Failure
    from pytest_vllm.run.state import ServerState
    from pytest_vllm.run.trials import Trial
    from pytest_vllm.wire.recording import Request

#: Exchanges at once, at most.
LANES = 16
KNOWN, DRAWN = "known", "drawn"


def explored(booted: BootedServer, state: ServerState, demand: Demand) -> ServerState:
    """Ask the profile's regressions again, then what is drawn, and write down what failed."""
    wanted = {spec.explores: one for one in demand.exchanges.values() if (spec := one.planned.spec).explores}
    able = {
        kind: one.planned.spec.build()
        for kind, one in wanted.items()
        if any(all(map(state.server.can, needs)) for needs in one.needs)
    }
    file = file_of(booted.run.rootdir, state.profile.name)
    if state.died or not (DRAWN in able or (KNOWN in able and file.is_file())):
        return state
    started = time.monotonic()
    keeper = _Keeper(booted, state, file)
    if KNOWN in able:
        keeper.known(_asker(booted, state, able[KNOWN]))
    if DRAWN in able:
        keeper.drawn(_asker(booted, state, able[DRAWN]))
    keeper.save()
    found = keeper.found
    booted.run.spent(
        "explore", started, profile=state.profile.name, trials=found.trials, requests=found.requests
    )
    return replace(state, died=booted.death() or (found.stopped if not booted.run.ended else ""))


class _Keeper:
    """Keeps what was explored, in memory and in the server's folder."""

    def __init__(self, booted: BootedServer, state: ServerState, file: Path) -> None:
        self.booted, self.state, self.file = booted, state, file
        self.found = Explored(file=f"{file.parent.name}/{file.name}")
        self.store = RecordingStore(state.folder / EXPLORED)

    def known(self, asker: Asker) -> None:
        """Ask the regressions of the profile."""
        rows, wrong = read(self.file, self.state.server)
        for line in wrong:
            self.booted.run.progress.say(line)
        trials = asker.written([one.requests for one in rows])
        findings = [self._finding(one.id, trial, known=True) for one, trial in zip(rows, trials, strict=True)]
        self._add(asker, findings=(*self.found.findings, *findings), known=len(rows))

    def drawn(self, asker: Asker) -> None:
        """Ask what is drawn, and whether the server is alive after that."""
        try:
            asker.exploration.draw(random.Random(0), self.state.server)  # noqa: S311 - no secret
        except NotRun as reason:
            self._add(asker, unasked=str(reason))
            return
        seconds, seed = self.booted.run.explore
        seed = secrets.randbelow(10**6) if seed is None else seed
        seconds = self.state.profile.explore.budget if seconds is None else seconds
        say = self.booted.run.progress.say
        say(f"explore: seed {seed}, {seconds:g} s of requests; --vllm-explore-seed={seed} draws them again")
        search = Search(asker, seed, seconds, say, self.state.profile.explore.without)
        began = time.monotonic()
        search.run()
        sure = [one for one in search.failures if one.fatal or (one.again and one.trial.rules)]
        self._write([one.trial for one in sure], seed)
        findings = [self._failed(one) for one in search.failures]
        self._add(
            asker,
            findings=(*self.found.findings, *findings),
            seed=seed,
            seconds=round(time.monotonic() - began, 3),
            trials=search.drawn,
        )
        self._ask_alive(asker)

    def save(self) -> None:
        """Write the account down."""
        plain = asdict(replace(self.found, findings=(), alive=()))
        plain["findings"] = [
            {name: value for name, value in vars(one).items() if name != "recordings"}
            for one in self.found.findings
        ]
        plain["alive"] = {one.key: f"explore.alive[{one.key}]" for one in self.found.alive}
        (self.state.folder / ACCOUNT).write_text(json.dumps(plain, indent=1), "utf-8")

    def _ask_alive(self, asker: Asker) -> None:
        server = self.state.server
        route = server.chat if server.can("chat") else server.completion
        asked = {"token": route("Hi", max_tokens=1)}
        if not server.api_only:
            asked["health"] = server.get("/health")
        rows = asker.plain(asked)
        for one in rows:
            self.store.save(replace(one, key=f"explore.alive[{one.key}]"))
        self._add(asker, alive=rows)

    def _add(self, asker: Asker, **more: object) -> None:
        stopped = asker.stopped or self.found.stopped
        requests = self.found.requests + asker.requests
        asker.requests = 0
        self.found = replace(self.found, stopped=stopped, requests=requests, **more)  # type: ignore[arg-type]

    def _write(self, trials: Sequence[Trial], seed: int) -> None:
        if not trials:
            return
        try:
            write(self.file, trials, self.state.server, seed)
        except OSError as error:
            self.booted.run.progress.say(f"explore: {self.file} could not be written ({error})")
        else:
            self.booted.run.progress.say(f"explore: {self.found.file} has what failed; later gates ask it")

    def _failed(self, one: Failure) -> Finding:
        return self._finding(str(one.number), one.trial, again=one.again, repeated=one.repeated)

    def _finding(
        self, id_: str, trial: Trial, *, known: bool = False, again: int = 0, repeated: int = 0
    ) -> Finding:
        kind = KNOWN if known else DRAWN
        keys = {one.key: f"explore.{kind}[{id_}-{one.key}]" for one in trial.recordings}
        for one in trial.recordings:
            self.store.save(replace(one, key=keys[one.key]))
        shown = _culprit(trial)
        script = curl(shown, self.state.server.url, access=self.state.server.access) if shown else ""
        rules = tuple(sorted({one.rule for one in trial.faults}))
        return Finding(id_, known, again, repeated, rules, keys, script, trial.recordings)


def _culprit(trial: Trial) -> Request | None:
    """The request that a fault names, else the first."""
    said = " ".join(one.said for one in trial.faults)
    named = [one for one in trial.recordings if f"{one.key}:" in said]
    return next((one.request for one in (*named, *trial.recordings)), None)


def _asker(booted: BootedServer, state: ServerState, exploration: Exploration) -> Asker:
    server, patience, progress = state.server, state.profile.record, booted.run.progress
    limit = booted.run.concurrency or min(server.max_num_seqs or 8, LANES)
    progress.phase("explore")

    async def send(plan: Sequence[Planned], store: RecordingStore) -> str:
        client = WireClient(server, booted.run.redactor, gap=patience.silence, exchange=patience.timeout)
        async with client:
            report = await record_all(
                server,
                plan,
                client,
                concurrency=limit,
                store=store,
                on_done=lambda _planned, _recording, done, total: progress.update(f"{done} of {total}"),
                build=lambda planned, done: build(planned, server, done),
                died=booted.death if server.kind.starts else str,
            )
        return report.stopped

    return Asker(server, exploration, lambda plan, store: asyncio.run(send(plan, store)))
