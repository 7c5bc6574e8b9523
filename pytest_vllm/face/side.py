"""Servers beside the one under test, for tests that compare: started when asked for, stopped with the run.

They are not judged: no check runs on them, and the verdict does not name them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.face.profiles import load_profiles
from pytest_vllm.launch.protocol import BootError
from pytest_vllm.run.booted import boot
from pytest_vllm.run.context import Demand
from pytest_vllm.run.steps import probed

if TYPE_CHECKING:
    from contextlib import ExitStack

    from pytest_vllm.face.session import GateSession
    from pytest_vllm.profile.model import Profile
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

        The server under test is taken as it is. Raises pytest.UsageError for a profile that is not there,
        that may not run beside others or does not start, and in an xdist worker.
        """
        return tuple(self._server(name) for name in names)

    def _server(self, name: str) -> Server:
        session = self._session
        if session.replaying:
            pytest.skip("this test talks to live servers, and a replay has none")
        if session.gate is None:
            raise pytest.UsageError("vllm_servers starts servers, which xdist workers do not: run without -n")
        state = session.gate.states.get(name)
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

    def _started(self, profile: Profile) -> Server:
        session = self._session
        assert session.gate is not None  # noqa: S101 - asked for by the caller
        running = [one.profile for one in session.gate.states.values() if one.live]
        for one in (profile, *running):
            server = one.server
            if server.kind.starts and not server.kind.simulated and not server.side_by_side:
                raise pytest.UsageError(
                    f"{one.name} and another server would run at once: set side-by-side = true in [server] "
                    "of both profiles if this machine holds both"
                )
        try:
            booted = boot(session.gate.run, profile)
            self._stack.callback(booted.stop)
            return probed(booted, Demand({}, {})).server
        except BootError as error:
            steps = "".join(f"\ntry: {step}" for step in error.try_)
            raise pytest.UsageError(f"{profile.name} did not start: {error.what}{steps}") from error
