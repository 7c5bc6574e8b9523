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

import pytest

from pytest_vllm.decide.verdict import Verdict
from pytest_vllm.declare.measurements import Measurements
from pytest_vllm.declare.recordings import Recordings
from pytest_vllm.face.account import Account
from pytest_vllm.face.baselines import read_baselines, refuse_other_model, refuse_unknown
from pytest_vllm.face.own import OwnBook
from pytest_vllm.face.profiles import load_profiles
from pytest_vllm.face.selection import profile_of
from pytest_vllm.face.traffic import Traffic
from pytest_vllm.launch.arguments import request_key
from pytest_vllm.profile.model import Secret
from pytest_vllm.run.context import RunContext
from pytest_vllm.run.state import RUN_FILE, ServerState, read_state
from pytest_vllm.wire.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_vllm.decide.baseline import Baseline
    from pytest_vllm.decide.verdict import Result
    from pytest_vllm.face.older import Older
    from pytest_vllm.face.options import Options
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.report.progress import Progress
    from pytest_vllm.report.record import RunRecord
    from pytest_vllm.run.gate import Gate

#: Verdicts, the worst first.
WORST = (
    Verdict.FAIL,
    Verdict.UNDECIDED,
    Verdict.ADVISORY,
    Verdict.WAIVED,
    Verdict.PASS,
    Verdict.NOT_RUN,
)


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
        own: tests of the person's own that are not checks, and what became of them.
        traffic: what the own test that runs now has sent and got back.
        faulty: node ids of own checks whose set-up failed by itself.
        missed: what was asked for by `--vllm-check` and names nothing, in words.
        unread: recordings of a replayed run that cannot be read: file -> why not.
        partial: whether some collected checks were left out.
        record: what the reports tell; None until the end.
        baselines: what was true last time, by profile.
        account: what was to be checked, and what was.
        unwritten: file -> why it could not be written.
        rootdir: where the person's own profiles, hardware and models lie.
        notes: what the header tells of how the profiles came about.
        open_late: starts a profile's server while tests run; None where nothing is started.
        older: the server that this run is compared with, and what it showed; None without one.
        serving: whose server items without a parameter run on now; empty: the first profile's.
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
    own: OwnBook = field(default_factory=OwnBook)
    traffic: Traffic = field(default_factory=Traffic)
    faulty: set[str] = field(default_factory=set)
    missed: list[str] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)
    partial: bool = False
    record: RunRecord | None = None
    baselines: dict[str, Baseline] = field(default_factory=dict)
    account: Account = field(default_factory=Account)
    unwritten: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    open_late: Callable[[str], None] | None = None
    older: Older | None = None
    serving: str = ""
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
        return self.serving or next(iter(self.profiles), "")

    @property
    def every_profile(self) -> dict[str, Profile]:
        """The profiles under test, and that of the older server."""
        return {**self.profiles, **({self.older.name: self.older.profile} if self.older else {})}

    @cached_property
    def redactor(self) -> Redactor:
        """Takes the secrets of every profile out of what is shown or kept."""
        return Redactor(secrets_in(self.every_profile.values()))

    @cached_property
    def replaying(self) -> bool:
        """Whether recordings are judged again, without a server."""
        return self.options.replay is not None

    @property
    def counting(self) -> bool:
        """Whether passing own tests are a GO: as asked for, and no check was left out of the run."""
        return self.options.own_tests == "count" and self.account.selected == self.account.meant

    def make_reports(self) -> None:
        """Make the folder of reports. Raises OSError.

        Answers of the server are quoted there: nobody else's business on a shared machine.
        """
        for folder in (self.reports.parents[1], self.reports.parent, self.reports):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def add(self, result: Result, *, last: bool = True) -> None:
        """Take in a judged check; what another plugin runs again is judged once.

        Args:
            result: the check.
            last: whether it is not run again after this.
        """
        if last:
            self.results.append(result)

    def once(self) -> list[Result]:
        """Every check once, however often a plugin ran it: the worst of its verdicts, in order of arrival."""
        kept: dict[tuple[str, str], Result] = {}
        for result in self.results:
            name = (result.profile, result.check)
            known = kept.get(name)
            if known is None or WORST.index(result.verdict) < WORST.index(known.verdict):
                kept[name] = result
        return list(kept.values())

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
            explore=(asked.explore_seconds, asked.explore_seed),
            asked=bool(asked.checks),
            concurrency=asked.concurrency,
            keep=asked.keep,
            evict_tenants=asked.evict_tenants,
        )

    def profile(self, item: pytest.Item) -> Profile:
        """The profile that an item runs on."""
        return self.every_profile[profile_of(item, self.default_profile)]

    def state(self, name: str) -> ServerState:
        """A profile's server, started where a test asks for it by name only while it runs.

        Raises pytest.UsageError in an xdist worker, which starts none.
        """
        if self.gate is not None:
            if name not in self.gate.states and self.open_late is not None:
                self.open_late(name)
            return self.gate.states[name]
        if name not in self._states:
            path = self.folder / RUN_FILE
            self._states = read_state(path) if path.is_file() else {}
            if self.replaying:
                for state in self._states.values():
                    state.store.set_damaged_aside()
                    self.unread |= state.store.damaged
        if name not in self._states:
            raise pytest.UsageError(
                f"the server of {name} was not started: mark a test that asks for it with getfixturevalue "
                'with @pytest.mark.usefixtures("vllm_server"), so that it is known before workers start'
            )
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
    if options.compares and not session.replaying:
        from pytest_vllm.face.against import older_of  # noqa: PLC0415 - few runs compare two servers

        session.older = older_of(config, options, profiles)
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
    """The values of every secret that the profiles name or their servers inherit, where they are known."""
    profiles = list(profiles)
    named = [one for p in profiles for one in (p.server.api_key, *p.server.env.values())]
    found = [os.environ.get(one.from_env, "") for one in named if isinstance(one, Secret)]
    sent = [request_key(profile, os.environ) for profile in profiles]
    return [secret for secret in (*found, *sent) if secret]
