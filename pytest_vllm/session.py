"""One pytest run that is about a vLLM server: its options, profiles, servers and results.

The same object lives in the controlling process, which opens the gate, and in xdist workers, which judge.
"""

from __future__ import annotations

import datetime as dt
import os
import secrets
import shlex
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.measure.swarm.crew import MISSING, available
from pytest_vllm.measurements import Measurements
from pytest_vllm.profile.known import with_known_faults
from pytest_vllm.profile.load import ProfileError, load
from pytest_vllm.profile.model import Secret
from pytest_vllm.profile.parsers import with_parsers
from pytest_vllm.recordings import Recordings
from pytest_vllm.remembered import read_baseline
from pytest_vllm.runstate import ServerState, read_state
from pytest_vllm.selection import profile_of
from pytest_vllm.wire.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_vllm.baseline import Baseline
    from pytest_vllm.gate import Gate
    from pytest_vllm.options import Options
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.runrecord import RunRecord
    from pytest_vllm.verdict import Result

RUN_FILE = "run.json"
#: Where the key is kept that a defect needs: not where a server would take it from.
SIMULATED_KEY = "PYTEST_VLLM_SIMULATED_KEY"


@dataclass
class GateSession:
    """What every part of the plugin shares.

    Args:
        options: what the person asked for.
        folder: the run folder; under `--vllm-replay`, the folder that is judged again.
        profiles: by name, in the order given.
        worker: whether this is an xdist worker.
        gate: opened by the controlling process; None in workers and in a replay.
        results: every judged check, in order of arrival.
        own_failures: node ids of failing tests that are no checks.
        missed: what was asked for by `--vllm-check` and names nothing, in words.
        partial: whether some collected checks were left out.
        record: what the reports tell; None until the end.
        baselines: what was true last time, by profile.
        rootdir: where the person's own profiles, hardware and models lie.
        notes: what the header tells of how the profiles came about.
    """

    options: Options
    folder: Path
    profiles: dict[str, Profile]
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
    notes: list[str] = field(default_factory=list)
    _states: dict[str, ServerState] = field(default_factory=dict)
    rootdir: Path = field(default_factory=Path.cwd)
    _recordings: dict[str, Recordings] = field(default_factory=dict)
    _measurements: dict[str, Measurements] = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        """Also the run folder's name."""
        return self.folder.name

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
    session = GateSession(options, run_folder(config, options), profiles, notes=notes)
    session.rootdir = config.rootpath
    session.worker = hasattr(config, "workerinput")
    session.baselines = read_baseline(options.baseline)
    return session


def run_folder(config: pytest.Config, options: Options) -> Path:
    """A new folder for this run; the controller's in a worker; the recorded one in a replay."""
    if hasattr(config, "workerinput"):
        return Path(config.workerinput["vllm_folder"])
    if options.replay is not None:
        return options.replay
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%d-%H%M%S")
    return options.report / "runs" / f"{stamp}-{secrets.token_hex(2)}"


def secrets_in(profiles: Iterable[Profile]) -> list[str]:
    """The values of every secret that the profiles name, as far as the environment has them."""
    named = [one for p in profiles for one in (p.server.api_key, *p.server.env.values())]
    found = [os.environ.get(one.from_env, "") for one in named if isinstance(one, Secret)]
    return [secret for secret in found if secret]


def load_profiles(options: Options, rootdir: Path, notes: list[str]) -> dict[str, Profile]:
    """The profiles of this run, options applied. Raises pytest.UsageError on a bad one.

    Args:
        options: which profiles, and what the command line changes.
        rootdir: where the person's own profiles lie.
        notes: is given what could not be carried over from `--vllm-from`.
    """
    try:
        if options.replay is not None:
            return _replayed(options.replay)
        if options.service and not options.source:
            raise pytest.UsageError("--vllm-service names a server of a file: pass --vllm-from=FILE too")
        names = options.profiles or ((_ATTACHED,) if options.url and not options.source else ())
        bases = [_base(name, rootdir) for name in names]
        bases += [_imported(options, notes)] if options.source else []
        loaded = [_adjusted(profile, options) for profile in bases]
    except ProfileError as error:
        raise pytest.UsageError(str(error)) from error
    if any(one.measure.locust or one.measure.locust_elsewhere for one in loaded) and not available():
        raise pytest.UsageError(MISSING)
    if options.url and len(loaded) > 1:
        raise pytest.UsageError("--vllm-url is one server: give it with at most one --vllm-profile")
    return {profile.name: profile for profile in loaded}


_ATTACHED = "attached"


def _base(name: str, rootdir: Path) -> Profile:
    if name == _ATTACHED:
        from pytest_vllm.profile.model import Profile, ServerPart  # noqa: PLC0415

        return Profile(name=_ATTACHED, server=ServerPart(launcher="attach"))
    return load(name, rootdir)


def _imported(options: Options, notes: list[str]) -> Profile:
    """The profile of a deployment that is written down elsewhere."""
    from pytest_vllm.profile.importers import imported  # noqa: PLC0415

    found = imported(str(options.source), service=options.service)
    notes += found.notes
    unseen = options.preflight or options.launcher == "sim"
    if unseen and not (found.profile.server.vllm_version or options.image):
        notes.append(
            "nothing there tells the version of vLLM, so a recent one is taken; "
            "an image with a version says it: --vllm-image=vllm/vllm-openai:v0.32.0"
        )
    return found.profile


def _adjusted(profile: Profile, options: Options) -> Profile:
    changes: dict[str, object] = {}
    if options.url:
        changes |= {"launcher": "attach", "url": options.url}
        if os.environ.get(options.api_key_env) and profile.server.api_key is None:
            changes["api_key"] = Secret(from_env=options.api_key_env)
    if options.launcher:
        changes["launcher"] = options.launcher
    expect = profile.expect
    if options.image:
        # another image is another version: what the profile says of its own does not hold for it
        changes |= {"image": options.image, "version": None}
        expect = expect.model_copy(update={"version": None})
    server = profile.server.model_copy(update=changes)
    defects = [*profile.defects, *options.defects]
    if defects and server.launcher != "sim":
        raise pytest.UsageError(
            f"defects break the simulator, but {profile.name} is started by {server.launcher}: "
            "add --vllm-launcher=sim"
        )
    changed = profile.model_copy(update={"server": server, "expect": expect, "defects": defects})
    try:
        changed = with_parsers(changed, options.tool_parser, options.reasoning_parser)
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error
    return with_defects(changed) if defects else with_known_faults(changed)


def with_defects(profile: Profile) -> Profile:
    """The profile with the serve arguments that its defects need to show. Raises pytest.UsageError."""
    from pytest_vllm.sim.defects.registry import needed  # noqa: PLC0415 - only broken runs pay for it

    try:
        words, environ = needed(profile.defects)
    except ValueError as error:
        raise pytest.UsageError(f"{error}; `pytest-vllm defects` lists them all") from error
    server = profile.server
    args = {**server.args, **flags_of(words)}
    env = {**server.env, **environ}
    changes: dict[str, object] = {"args": args, "env": env}
    key = env.get("VLLM_API_KEY")
    if isinstance(key, str) and server.api_key is None:
        os.environ[SIMULATED_KEY] = key
        changes["api_key"] = Secret(from_env=SIMULATED_KEY)
    return profile.model_copy(update={"server": server.model_copy(update=changes)})


def flags_of(words: Sequence[str]) -> dict[str, Any]:
    """Serve arguments as a profile writes them, from words of a command line."""
    from pytest_vllm.profile.importers import imported  # noqa: PLC0415 - only broken runs pay for it

    line = shlex.join(["vllm", "serve", "any", *words])
    return dict(imported(line, kind="shell").profile.server.args)


def _replayed(folder: Path) -> dict[str, Profile]:
    path = folder / RUN_FILE
    if not path.is_file():
        runs = sorted(folder.glob(f"*/{RUN_FILE}")) or sorted(folder.glob(f"runs/*/{RUN_FILE}"))
        hint = f"; did you mean {runs[-1].parent}?" if runs else ""
        raise pytest.UsageError(f"--vllm-replay={folder}: no {RUN_FILE} there, so it is no run folder{hint}")
    return {name: state.profile for name, state in read_state(path).items()}
