"""The measuring phase: declared loads, one after the other, while nobody else measures the same server."""

from __future__ import annotations

import hashlib
import inspect
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from pytest_vllm.measure.measured import Measured
from pytest_vllm.measure.run import perform, speed_of
from pytest_vllm.measure.workload import Workload
from pytest_vllm.measurements import Measurements
from pytest_vllm.profile.derived import figures_of
from pytest_vllm.wire.recording import NotRun, Undecided

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_vllm.measurements import PlannedMeasurement
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.report.progress import Progress
    from pytest_vllm.runstate import ServerState

#: Seconds to wait for another run that measures the same server.
QUEUE = 3600.0


def measure_all(
    state: ServerState,
    plan: Sequence[PlannedMeasurement],
    progress: Progress,
    rootdir: Path,
    *,
    tier: str = "gate",
) -> dict[str, Any]:
    """Perform measurements and keep what they give in the server's folder.

    Args:
        state: the server.
        plan: in order; each comes after those that it depends on.
        progress: told how far it is.
        rootdir: where hardware and model files of the person lie.
        tier: `soak` has a budget of its own.

    Returns:
        What the report tells of the phase: budget in the server's seconds, seconds scored, how many requests.
    """
    kept = Measurements(state.folder)
    speed = speed_of(state.server)
    budget = budget_for(state.profile, speed, tier=tier, simulated=state.server.simulated)
    done: dict[str, Measured] = {}
    left, weights = budget, sum(one.spec.weight for one in plan)
    progress.phase("measure")
    with _alone(state.server.url, progress):
        for one in plan:
            share = left * one.spec.weight / weights
            done[one.key] = _measure(one, state, rootdir, share, done, progress)
            kept.save(done[one.key])
            left, weights = left - done[one.key].seconds, weights - one.spec.weight
    spent = sum(one.seconds for one in done.values())
    requests = sum(len(one.samples) for one in done.values())
    progress.done(
        f"{len(plan)} measurements, {requests} requests, {spent:.0f} of at most {budget:.0f} s scored"
    )
    return {"budget": round(budget, 3), "scored": round(spent, 3), "requests": requests, "speed": speed}


def budget_for(profile: Profile, speed: float, *, tier: str, simulated: bool) -> float:
    """Scored seconds of the server's clock for all measurements together."""
    whole = profile.measure.soak if tier == "soak" else profile.measure.budget
    return min(whole, profile.measure.rehearsal * speed) if simulated else whole


def _measure(
    one: PlannedMeasurement,
    state: ServerState,
    rootdir: Path,
    budget: float,
    done: Mapping[str, Measured],
    progress: Progress,
) -> Measured:
    try:
        workload = _built(one, state, rootdir, budget, done)
    except NotRun as reason:
        return Measured(one.key, Workload(), skipped=str(reason), simulated=state.server.simulated)
    except Undecided as reason:
        return Measured(one.key, Workload(), stopped=str(reason), simulated=state.server.simulated)
    return perform(one.key, workload, state.server, progress.measuring)


def _built(
    one: PlannedMeasurement, state: ServerState, rootdir: Path, budget: float, done: Mapping[str, Measured]
) -> Workload:
    """The workload that a measurement declares for this server; never longer than its share of the budget."""
    asked = inspect.signature(one.spec.build).parameters
    given = {"server": state.server, "profile": state.profile, "budget": budget}
    if "figures" in asked:
        given["figures"] = figures_of(state.profile, rootdir)
    earlier = {name: done[key] for name, key in one.after.items()}
    values = {name: value for name, value in given.items() if name in asked}
    workload: Workload = one.spec.build(**values, **one.cases, **earlier)
    return replace(workload, seconds=min(workload.seconds, budget))


@contextmanager
def _alone(url: str, progress: Progress) -> Iterator[None]:
    """Hold the lock of a server's measurements, across runs and users of one machine."""
    digest = hashlib.sha256(url.encode()).hexdigest()[:12]
    lock = FileLock(Path(tempfile.gettempdir()) / f"pytest-vllm-measures-{digest}.lock", mode=0o666)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress.update("waiting for another run that measures this server")
        lock.acquire(timeout=QUEUE)
    try:
        yield
    finally:
        lock.release()
