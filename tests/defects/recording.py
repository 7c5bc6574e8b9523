"""Boots the simulator, healthy or broken, and records what every check needs."""

from __future__ import annotations

import io
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.declare.measurements import Measurements
from pytest_vllm.face.items import measured_by, wanted
from pytest_vllm.face.options import Options
from pytest_vllm.face.profiles import flags_of, with_defects
from pytest_vllm.face.session import GateSession
from pytest_vllm.launch.protocol import BootError
from pytest_vllm.profile.load import load
from pytest_vllm.report.progress import Progress
from pytest_vllm.run.gate import Gate
from pytest_vllm.run.gauges import read_timeline
from pytest_vllm.run.restart import read_restart
from pytest_vllm.sim.api.reply import Exchange
from pytest_vllm.sim.defects.rewrite import Recorded, rewritten_metrics
from pytest_vllm.sim.defects.rewrite import rewritten as spoil
from pytest_vllm.sim.defects.scope import acts_on
from tests.defects.judging import View

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pytest

    from pytest_vllm.profile.model import Profile
    from pytest_vllm.run.state import ServerState
    from pytest_vllm.sim.defects.registry import Defect
    from pytest_vllm.wire.recording import Recording


ROOT = Path(__file__).parents[2]


def profile_for(
    defects: Sequence[str] = (), needs: Sequence[str] = (), environ: Sequence[str] = (), name: str = "sim"
) -> Profile:
    """A profile, broken by these defects, or healthy with these serve arguments and environment."""
    profile = load(name, ROOT)
    args = {**profile.server.args, **flags_of(needs)}
    env = {**profile.server.env, **dict(pair.split("=", 1) for pair in environ)}
    server = profile.server.model_copy(update={"args": args, "env": env, "launcher": "sim"})
    return with_defects(profile.model_copy(update={"server": server, "defects": list(defects)}))


def hurried(profile: Profile) -> Profile:
    """The profile with less patience for a server that hangs, where it is the simulator at its own speed."""
    if profile.name != "sim":
        return profile
    patience = profile.record.model_copy(update={"silence": 2.0, "timeout": 6.0})
    boot = profile.boot.model_copy(update={"stalled": 5.0, "timeout": 15.0})
    return profile.model_copy(update={"record": patience, "boot": boot})


def record(folder: Path, profile: Profile, items: list[pytest.Item]) -> View | BootError:
    """Boot, probe and record; a boot that fails is an outcome too."""
    try:
        with opened(folder, profile, items) as view:
            return view
    except BootError as error:
        return error


@contextmanager
def opened(folder: Path, profile: Profile, items: Sequence[pytest.Item]) -> Iterator[View]:
    """Boot, probe, record and measure; the server runs on until the end. Raises BootError."""
    session = GateSession(Options(profiles=(profile.name,)), folder, {profile.name: profile}, folder)
    gate = Gate(session.context(Progress(io.StringIO())), session.profiles)
    with gate:
        state = gate.open(profile.name, wanted(items), measured_by(items))
        yield _view(state)


def _view(state: ServerState) -> View:
    recordings = {key: state.store.get(key) for key in state.store.keys()}  # noqa: SIM118
    measured = Measurements(state.folder)
    for key in measured.keys():  # noqa: SIM118 - read now, while the folder is there
        measured.get(key)
    timeline = read_timeline(state.folder)
    return View(state, recordings, state.log(), read_restart(state.folder), timeline, measured)


def rewritten(view: View, *defects: Defect) -> View:
    """The recordings of a healthy server as a broken one would have answered.

    A recording that no defect touches stays the same object. Without a defect, streams come out as defects
    leave them: an event a chunk. With one, they have to be so already.
    """
    changed = {key: _rewritten(one, defects) for key, one in view.recordings.items()}
    return replace(view, recordings=changed)


def _touched(one: Recording, defects: Sequence[Defect]) -> bool:
    """Whether a defect acts at a point that this answer comes by."""
    points = {"metrics"} if one.metrics_before is not None or one.metrics_after is not None else set()
    kind = next((value for name, value in one.headers if name.lower() == "content-type"), "")
    if one.request.path.startswith("/metrics"):
        points |= {"metrics", "reply"}
    elif kind.startswith("text/event-stream"):
        points |= {"head", "events", "chunk"}
    else:
        points |= {"json", "reply"}
    acting = [defect.on[point] for defect in defects for point in points & defect.on.keys()]
    return any(acts_on(function, one.request.path) for function in acting)


def _rewritten(one: Recording, among: Sequence[Defect]) -> Recording:
    if one.status is None or one.aborted or (among and not _touched(one, among)):
        return one
    defects = [defect.name for defect in among]
    request = one.request
    headers = {name.lower(): value for name, value in request.headers.items() if value is not None}
    exchange = Exchange(request.method, request.path, headers, request.json)
    answer = spoil(defects, Recorded(one.status, list(one.headers), list(one.chunks)), exchange)
    scrapes = {
        name: rewritten_metrics(defects, text)
        for name, text in (("metrics_before", one.metrics_before), ("metrics_after", one.metrics_after))
        if text is not None
    }
    changed = {
        "status": answer.status,
        "headers": tuple(answer.headers),
        "chunks": tuple(answer.chunks),
        **scrapes,
    }
    same = all(value == getattr(one, name) for name, value in changed.items())
    return one if same else one.with_response(**changed)
