"""One pytest run that is about a vLLM server: its options, profiles, servers and results.

The same object lives in the controlling process, which opens the gate, and in xdist workers, which judge.
"""

from __future__ import annotations

import datetime as dt
import os
import secrets
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.declare.measurements import Measurements
from pytest_vllm.declare.recordings import Recordings
from pytest_vllm.face.account import Account
from pytest_vllm.face.baselines import read_baselines, refuse_other_model, refuse_unknown
from pytest_vllm.face.profiles import load_profiles
from pytest_vllm.face.selection import profile_of
from pytest_vllm.profile.model import Secret
from pytest_vllm.run.context import RunContext
from pytest_vllm.run.state import RUN_FILE, ServerState, read_state
from pytest_vllm.wire.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from pytest_vllm.decide.baseline import Baseline
    from pytest_vllm.decide.verdict import Result
    from pytest_vllm.face.options import Options
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.report.progress import Progress
    from pytest_vllm.report.record import RunRecord
    from pytest_vllm.run.gate import Gate


@dataclass
class GateSession:
    """What every part of the plugin shares.

    Args:
        options: what the person asked for.
        folder: the run folder; under `--vllm-replay`, the folder that is judged again and left as it is.
        profiles: by name, in the order given.
        reports: where reports are written: the run folder; under `--vllm-replay`, a new one.
        worker: whether this is an xdist worker.
        gate: opened by the controlling process; None in workers and in a replay.
        results: every judged check, in order of arrival.
        own_failures: node ids of failing tests that are not checks.
        missed: what was asked for by `--vllm-check` and names nothing, in words.
        partial: whether some collected checks were left out.
        record: what the reports tell; None until the end.
        baselines: what was true last time, by profile.
        account: what was to be checked, and what was.
        unwritten: file -> why it could not be written.
        rootdir: where the person's own profiles, hardware and models lie.
        notes: what the header tells of how the profiles came about.
    """

    options: Options
    folder: Path
    profiles: dict[str, Profile]
    reports: Path
    worker: bool = False
    gate: Gate | None = None
    started: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))
    clock: float = field(default_factory=time.monotonic)
    results: list[Result] = field(default_factory=list)
    own_failures: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    partial: bool = False
    record: RunRecord | None = None
    baselines: dict[str, Baseline] = field(default_factory=dict)
    account: Account = field(default_factory=Account)
    unwritten: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _states: dict[str, ServerState] = field(default_factory=dict)
    rootdir: Path = field(default_factory=Path.cwd)
    _recordings: dict[str, Recordings] = field(default_factory=dict)
    _measurements: dict[str, Measurements] = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        """Also the name of the folder of its reports."""
        return self.reports.name

    @property
    def default_profile(self) -> str:
        """The profile of items that are not parametrised."""
        return next(iter(self.profiles), "")

    @cached_property
    def redactor(self) -> Redactor:
        """Takes the secrets of every profile out of what is shown or kept."""
        return Redactor(secrets_in(self.profiles.values()))

    @cached_property
    def replaying(self) -> bool:
        """Whether recordings are judged again, without a server."""
        return self.options.replay is not None

    def make_reports(self) -> None:
        """Make the folder of reports. Raises OSError.

        Answers of the server are quoted there: nobody else's business on a shared machine.
        """
        for folder in (self.reports.parents[1], self.reports.parent, self.reports):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def context(self, progress: Progress) -> RunContext:
        """What this run gives to its servers."""
        asked = self.options
        return RunContext(
            self.run_id,
            self.folder,
            self.rootdir,
            self.redactor,
            progress,
            tier=asked.tier,
            asked=bool(asked.checks),
            concurrency=asked.concurrency,
            keep=asked.keep,
            evict_tenants=asked.evict_tenants,
        )

    def profile(self, item: pytest.Item) -> Profile:
        """The profile that an item runs on."""
        return self.profiles[profile_of(item, self.default_profile)]

    def state(self, name: str) -> ServerState:
        """A profile's server. Fails the asking test when it was never opened."""
        if self.gate is not None and name in self.gate.states:
            return self.gate.states[name]
        if name not in self._states:
            self._states = read_state(self.folder / RUN_FILE)
        return self._states[name]

    def recordings(self, name: str) -> Recordings:
        """The recordings of a profile's server."""
        if name not in self._recordings:
            self._recordings[name] = Recordings(self.state(name).store)
        return self._recordings[name]

    def measurements(self, name: str) -> Measurements:
        """The measurements of a profile's server."""
        if name not in self._measurements:
            self._measurements[name] = Measurements(self.state(name).folder)
        return self._measurements[name]


def open_session(config: pytest.Config, options: Options) -> GateSession:
    """This run's session, its profiles loaded. Raises pytest.UsageError on a bad one."""
    notes: list[str] = []
    profiles = load_profiles(options, config.rootpath, notes)
    folder, reports = run_folders(config, options)
    session = GateSession(options, folder, profiles, reports, notes=notes)
    session.rootdir = config.rootpath
    session.worker = hasattr(config, "workerinput")
    session.baselines = read_baselines(options, profiles)
    refuse_unknown(options.baseline, session.baselines, profiles)
    if session.replaying:
        for name in profiles:
            refuse_other_model(session, name)
    return session


def run_folders(config: pytest.Config, options: Options) -> tuple[Path, Path]:
    """Where this run's servers are written down, and where its reports: one folder unless it is a replay.

    A worker is given the controller's.
    """
    if hasattr(config, "workerinput"):
        return Path(config.workerinput["vllm_folder"]), Path(config.workerinput["vllm_reports"])
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%d-%H%M%S")
    fresh = options.report / "runs" / f"{stamp}-{secrets.token_hex(2)}"
    return options.replay or fresh, fresh


def secrets_in(profiles: Iterable[Profile]) -> list[str]:
    """The values of every secret that the profiles name, as far as the environment has them."""
    named = [one for p in profiles for one in (p.server.api_key, *p.server.env.values())]
    found = [os.environ.get(one.from_env, "") for one in named if isinstance(one, Secret)]
    return [secret for secret in found if secret]
