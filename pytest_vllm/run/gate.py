"""The servers of a run, opened one by one and closed whatever happens. In the controlling process only."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from pytest_vllm.launch.signals import Interrupted
from pytest_vllm.run.booted import boot
from pytest_vllm.run.context import Demand
from pytest_vllm.run.explore import explored
from pytest_vllm.run.plan import measures_for
from pytest_vllm.run.state import RUN_FILE, write_state
from pytest_vllm.run.steps import benched, measured, probed, recorded, restarted, with_clients

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.profile.model import Profile
    from pytest_vllm.report.record import Phase
    from pytest_vllm.run.booted import BootedServer
    from pytest_vllm.run.context import RunContext
    from pytest_vllm.run.interleaved import Interleaved
    from pytest_vllm.run.plan import Wanted, WantedMeasurement
    from pytest_vllm.run.state import ServerState


class Gate:
    """Boots, probes, records and measures the servers of a run."""

    def __init__(
        self, run: RunContext, profiles: Mapping[str, Profile], aside: frozenset[str] = frozenset()
    ) -> None:
        """Nothing is started yet.

        Args:
            run: what its servers share.
            profiles: by name.
            aside: names of those that are not under test: they are not kept running, nor judged by a replay.
        """
        self.run, self.profiles, self.aside = run, profiles, aside
        self.states: dict[str, ServerState] = {}
        self._open: dict[str, BootedServer] = {}

    @property
    def phases(self) -> list[Phase]:
        """Where the time went, in order."""
        return self.run.phases

    def open(
        self,
        name: str,
        wants: Mapping[str, Wanted],
        measures: Mapping[str, WantedMeasurement] | None = None,
    ) -> ServerState:
        """Boot the profile's server, find out what it can do, record and measure what is wanted.

        A run that is told to end by SIGTERM goes on to judge what it has; told twice, it ends at once.

        Raises BootError when it does not come up; nothing of it is left then.
        """
        if self.run.ended:
            raise Interrupted(self.run.ended[0])
        demand = Demand(wants, measures or {})
        run = replace(self.run, keep=False) if name in self.aside else self.run
        booted = boot(run, self.profiles[name])
        try:
            state = probed(booted, demand)
        except BaseException:
            booted.stack.close()
            raise
        self._open[name], self.states[name] = booted, state
        exploring = () if name in self.aside else (explored,)
        for step in (recorded, with_clients, measured, *exploring, benched, restarted):
            try:
                state = self.states[name] = step(booted, state, demand)
            except Interrupted as signal:
                if self.run.ended:
                    raise
                self.run.ended.append(str(signal))
            self.save()
            if self.run.ended:
                break
        return state

    def close(self, name: str) -> None:
        """Stop one server."""
        self._open.pop(name).stop()
        self.states[name] = replace(self.states[name], live=False)
        self.save()

    def close_all(self, but: str = "") -> None:
        """Stop every server of this run; `but` names one that stays."""
        for name in [name for name in self._open if name != but]:
            self.close(name)

    def interleave(
        self, older: str, newer: str, measures: Mapping[str, WantedMeasurement]
    ) -> Interleaved | None:
        """Measure two open servers in turns; None where one runs no more, or nothing is to be measured."""
        from pytest_vllm.run.interleaved import interleaved  # noqa: PLC0415 - few runs compare two servers

        both = self.states[older], self.states[newer]
        plan = measures_for(measures, both[0].server)
        if not plan or not all(name in self._open and self.states[name].live for name in (older, newer)):
            return None
        if any(state.died for state in both):
            return None
        started = time.monotonic()
        found = interleaved(*both, plan, self.run.progress, self.run.rootdir)
        self.run.spent("measure in turns", started, profile=newer, pairs=found.pairs)
        for name in (older, newer):
            self.states[name] = replace(self.states[name], died=self._open[name].death())
        self.save()
        return found

    def save(self) -> None:
        """Write down for the other processes what is known."""
        tested = {name: state for name, state in self.states.items() if name not in self.aside}
        write_state(self.run.folder / RUN_FILE, tested, run_id=self.run.run_id)

    def __enter__(self) -> Self:
        """The gate opens; servers are opened one by one."""
        # answers of the server lie there: nobody else's business on a shared machine
        for folder in (self.run.folder.parents[1], self.run.folder.parent, self.run.folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self

    def __exit__(self, *exc: object) -> None:
        """Whatever happened inside, every server of this run is stopped."""
        self.close_all()
