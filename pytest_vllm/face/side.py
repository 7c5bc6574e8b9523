"""Servers beside the one under test, for tests that compare: started when asked for, stopped with the run.

They are not judged: no check runs on them, and the verdict does not name them.
"""

from __future__ import annotations

import io
import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.face.profiles import load_profiles
from pytest_vllm.launch.protocol import BootError
from pytest_vllm.report.progress import Progress
from pytest_vllm.run.booted import boot
from pytest_vllm.run.context import Demand
from pytest_vllm.run.steps import probed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import ExitStack

    from pytest_vllm.face.session import GateSession
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.run.context import RunContext
    from pytest_vllm.run.state import ServerState
    from pytest_vllm.wire.server import Server


class SideServers:
    """`a, b = vllm_servers("a", "b")`: servers of these profiles, all of them running."""

    def __init__(self, session: GateSession, stack: ExitStack) -> None:
        """Start nothing.

        Args:
            session: this run.
            stack: stops the servers when it is closed.
        """
        self._session, self._stack = session, stack
        self._servers: dict[str, Server] = {}

    def __call__(self, *names: str) -> tuple[Server, ...]:
        """The servers of these profiles, in this order; started where they do not run yet.

        The server under test is taken as it is. An xdist worker starts its own, simulated ones alone: each
        worker would start another server on the same GPU. Raises pytest.UsageError for a profile that is not
        there, that may not run beside others or does not start.
        """
        return tuple(self._server(name) for name in names)

    def _server(self, name: str) -> Server:
        session = self._session
        if session.replaying:
            pytest.skip("this test talks to live servers, and a replay has none")
        state = self._tested().get(name)
        if state is not None and state.live:
            return state.server
        if name not in self._servers:
            self._servers[name] = self._started(self._profile(name))
        return self._servers[name]

    def _profile(self, name: str) -> Profile:
        if name in self._session.profiles:
            return self._session.profiles[name]
        alone = replace(self._session.options, profiles=(name,), url=None, source=None, service=None)
        return next(iter(load_profiles(alone, self._session.rootdir, []).values()))

    def _tested(self) -> Mapping[str, ServerState]:
        """The servers under test, by profile: of the gate, or as a worker reads them."""
        session = self._session
        if session.gate is not None:
            return session.gate.states
        found = {}
        for name in session.profiles:
            with suppress(pytest.UsageError):  # not started yet: it does not run beside
                found[name] = session.state(name)
        return found

    def _run(self) -> RunContext:
        """What a side server shares with the run; in a worker a folder of its own, and no progress."""
        session = self._session
        if session.gate is not None:
            return session.gate.run
        worker = os.environ.get("PYTEST_XDIST_WORKER", "worker")
        return replace(session.context(Progress(io.StringIO())), folder=session.folder / worker)

    def _started(self, profile: Profile) -> Server:
        kind = profile.server.kind
        if self._session.worker and kind.starts and not kind.simulated:
            raise pytest.UsageError(
                f"vllm_servers would start a server of {profile.name} in each xdist worker: run without -n"
            )
        running = [one.profile for one in self._tested().values() if one.live]
        for one in (profile, *running):
            server = one.server
            if server.kind.starts and not server.kind.simulated and not server.side_by_side:
                raise pytest.UsageError(
                    f"{one.name} and another server would run at once: set side-by-side = true in [server] "
                    "of both profiles if this machine holds both"
                )
        try:
            booted = boot(self._run(), profile)
            self._stack.callback(booted.stop)
            return probed(booted, Demand({}, {})).server
        except BootError as error:
            steps = "".join(f"\ntry: {step}" for step in error.try_)
            raise pytest.UsageError(f"{profile.name} did not start: {error.what}{steps}") from error
