"""The measuring phase: declared loads, one after the other, while nobody else measures the same server."""

from __future__ import annotations

import hashlib
import inspect
import tempfile
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from pytest_vllm.declare.measurements import Measurements
from pytest_vllm.launch.protocol import Benched
from pytest_vllm.measure import secondopinion
from pytest_vllm.measure.measured import Measured
from pytest_vllm.measure.run import TRIES, perform, speed_of
from pytest_vllm.measure.swarm.crew import Crew
from pytest_vllm.measure.workload import Workload, with_files
from pytest_vllm.profile.derived import figures_of
from pytest_vllm.report.text import nouns
from pytest_vllm.run.aside import Latest
from pytest_vllm.wire.recording import NotRun, Undecided
from pytest_vllm.wire.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from pytest_vllm.declare.measurements import PlannedMeasurement
    from pytest_vllm.launch.protocol import Handle
    from pytest_vllm.profile.model import MeasurePart
    from pytest_vllm.report.progress import Progress
    from pytest_vllm.run.state import ServerState
    from pytest_vllm.wire.server import Server

#: Seconds to wait for another run that measures the same server.
QUEUE = 3600.0
#: Seconds of the wall that a load on the simulator may take to decide its bounds.
REHEARSED = 4.0
#: Seconds of the wall for all loads of a rehearsal whose profile sets none, where it is asked for.
REHEARSAL = 0.9
#: Seconds that the tries of a load may have taken for another one to follow, without those of being held up.
AGAIN = 120.0
NOT_KNOWN = 'where a server behind the proxy is was not given: direct = "http://…" in [deployment.proxy]'
NO_TIME = "this rehearsal measures only what --vllm-check asks for (rehearsal in [measure])"


def measure_all(
    state: ServerState,
    plan: Sequence[PlannedMeasurement],
    progress: Progress,
    rootdir: Path,
    *,
    tier: str = "gate",
    asked: bool = True,
    gone: Callable[[], str] = str,
    stopped: str = "",
) -> dict[str, Any]:
    """Perform measurements and keep what they give in the server's folder.

    Args:
        state: the server.
        plan: in order; each comes after those that it depends on.
        progress: told how far it is.
        rootdir: where hardware and model files of the person lie.
        tier: `soak` has a budget of its own.
        asked: whether somebody asked for these; if not, a rehearsal without time measures only own ones.
        gone: why the server is gone or hangs, in words; empty while it lives. May take a while.
        stopped: why nothing is measured at all; empty where it is.

    Returns:
        What the report tells of the phase: budget in the server's seconds, seconds scored, how many requests;
        `stopped`, why nothing more was measured, where the server was gone.
    """
    kept = Measurements(state.folder)
    speed = speed_of(state.server)
    whole = state.profile.measure.soak if tier == "soak" else state.profile.measure.budget
    simulated = state.server.simulated
    if simulated and not (asked or state.profile.measure.rehearsal):
        due = _with_own(plan)
        for one in plan:
            if one.key not in due:
                kept.save(Measured(one.key, Workload(), skipped=NO_TIME, simulated=True))
        if not due:
            return {}
        plan = [one for one in plan if one.key in due]
    rehearsal = state.profile.measure.rehearsal or REHEARSAL
    budget = min(whole, rehearsal * speed) if simulated else whole
    most = min(whole, REHEARSED * speed) if simulated else 0.0
    done: dict[str, Measured] = {}
    left, weights = budget, sum(one.spec.weight for one in plan)
    progress.phase("measure")
    with alone(state.server.url, progress), _crew(state.profile.measure, progress) as crew:
        for one in plan:
            share = left * one.spec.weight / weights if one.spec.weight else left
            bench = Bench(state, rootdir, share, max(share, most), crew)
            if stopped:
                found = Measured(one.key, Workload(), stopped=stopped, simulated=simulated)
            else:
                found, stopped = _living(one, bench, done, progress, gone)
            kept.save(found)
            done[one.key] = found
            if one.spec.weight:
                left, weights = left - min(found.seconds, share), max(weights - one.spec.weight, 1e-9)
    spent = sum(one.seconds for one in done.values())
    requests = sum(len(one.samples) for one in done.values())
    made = f"{len(plan)} {nouns(len(plan), 'measurement')}, {requests} {nouns(requests, 'request')}"
    progress.done(f"{made}, {spent:.3g} s of load scored")
    told = {"stopped": stopped} if stopped else {}
    return {
        "budget": round(budget, 3),
        "scored": round(spent, 3),
        "requests": requests,
        "speed": speed,
        **told,
    }


def _with_own(plan: Sequence[PlannedMeasurement]) -> set[str]:
    """The keys of what a project declares itself, and of what those come after."""
    due: set[str] = set()
    for one in reversed(plan):
        if one.spec.own or one.key in due:
            due |= {one.key, *one.after.values()}
    return due


def second_opinion(state: ServerState, handle: Handle, progress: Progress) -> dict[str, Any]:
    """Perform one load by ours and by `vllm bench serve`, and tell where they differ.

    Returns what the report tells of it: both clients' figures, or `not-run` with the reason.
    """
    if not isinstance(handle, Benched) or (called := handle.bench()) is None:
        why = f"the launcher {state.server.launcher} has none to run; docker, podman and process have"
        if state.server.launcher == "process":
            why = "the server's command does not say how vLLM is called: neither `vllm serve` nor its module"
        progress.say(f"vllm bench serve: not run: {why}")
        return {"not-run": why}
    program, url = called
    progress.phase("measure", "vllm bench serve")
    with alone(state.server.url, progress):
        ours = unheld("second-opinion.ours", secondopinion.workload(), state.server, progress)
        words = secondopinion.command(program, url, state.profile.server.model or "", state.server.model)
        key = state.server.api_key
        status, text = handle.inside(words, secondopinion.PATIENCE, secondopinion.variables(key))
    try:
        # redacted before anything is cut: half a key is still a secret
        opinion = secondopinion.read(status, Redactor().knowing(key).text(text), ours)
    except ValueError as error:
        progress.say(f"vllm bench serve: no second opinion: {error}")
        return {"not-run": str(error)}
    progress.say(f"vllm bench serve: {opinion.text}")
    return opinion.plain()


@dataclass(frozen=True)
class Bench:
    """What a measurement is given.

    Args:
        state: the server.
        rootdir: where hardware and model files of the person lie.
        budget: seconds of the server's clock that may be scored.
        most: the same for a load that has bounds to decide, and stops once it has.
        crew: the processes that send the loads; None: this one does.
    """

    state: ServerState
    rootdir: Path
    budget: float
    most: float
    crew: Crew | None = None

    @property
    def behind(self) -> str:
        """The address of a server behind the proxy; empty where nobody gave it."""
        proxy = self.state.profile.deployment.proxy
        told = self.state.facts.get("direct") or (proxy.direct if proxy else None)
        return str(told or "")

    def workload(self, one: PlannedMeasurement, done: Mapping[str, Measured]) -> Workload:
        """What a measurement declares for this server, no longer than its share of the budget.

        One that is over after a number of requests sets its own limit. Raises NotRun and Undecided as the
        measurement does.
        """
        asked = inspect.signature(one.spec.build).parameters
        given = {"server": self.state.server, "profile": self.state.profile, "budget": self.budget}
        if "figures" in asked:
            given["figures"] = figures_of(self.state.profile, self.rootdir)
        earlier = {name: done[key] for name, key in one.after.items()}
        values = {name: value for name, value in given.items() if name in asked}
        declared: Workload = one.spec.build(**values, **one.cases, **earlier)
        beside = Path(one.spec.build.__code__.co_filename).parent
        made = with_files(declared, (beside, self.rootdir))
        if made.direct and not self.behind:
            raise NotRun(NOT_KNOWN)
        if made.requests:
            return made
        return replace(made, seconds=self.most if made.goals else min(made.seconds, self.budget))


def _living(
    one: PlannedMeasurement,
    bench: Bench,
    done: Mapping[str, Measured],
    progress: Progress,
    gone: Callable[[], str],
) -> tuple[Measured, str]:
    """A measurement, and why the server was gone in it; empty while it lives.

    A server that was silent and lives had stood still: it is measured again, once.
    """
    found = _measured(one, bench, done, progress)
    if not found.unanswered:
        return found, ""
    progress.update(f"{one.key}: its last requests got no answer: asks whether the server lives")
    if why := gone():
        return replace(found, spoiled=why), why
    if found.hung:
        progress.say(f"{one.key}: {found.stopped}; the server answers again: measured again")
        found = _measured(one, bench, done, progress)
    return found, ""


def _measured(
    one: PlannedMeasurement, bench: Bench, done: Mapping[str, Measured], progress: Progress
) -> Measured:
    simulated = bench.state.server.simulated
    try:
        workload = bench.workload(one, done)
    except NotRun as reason:
        return Measured(one.key, Workload(), skipped=str(reason), simulated=simulated)
    except Undecided as reason:
        return Measured(one.key, Workload(), stopped=str(reason), simulated=simulated)
    except Exception as error:  # noqa: BLE001 - a builder is a person's own code; the run goes on
        said = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        return Measured(one.key, Workload(), spoiled=f"no load was sent: {said}", simulated=simulated)
    server = bench.state.server
    if workload.direct:
        server = replace(server, url=bench.behind or server.url)
    return unheld(one.key, workload, server, progress, bench.crew)


def unheld(
    key: str, workload: Workload, server: Server, progress: Progress, crew: Crew | None = None
) -> Measured:
    """Perform a load, and again where this process was held up for too much of it, three times at most."""
    spent = 0.0
    for more in reversed(range(TRIES)):
        with Latest(progress.measuring) as say:
            found = perform(key, workload, server, say, crew)
        spent += max(0.0, found.cost - found.held_for)
        if not found.held_up or found.failed or spent > AGAIN or not more:
            break
        progress.say(f"{key}: {found.held_up}: measured again")
    return found


def _crew(measure: MeasurePart, progress: Progress) -> AbstractContextManager[Crew | None]:
    """The processes that send the loads, where the profile asks for some."""
    if not measure.locust and not measure.locust_elsewhere:
        return nullcontext()
    return Crew(measure.locust, measure.locust_elsewhere, measure.locust_address, progress.update)


@contextmanager
def alone(url: str, progress: Progress) -> Iterator[None]:
    """Hold the lock of a server's measurements, across runs and users of a machine; its file goes with it."""
    digest = hashlib.sha256(url.encode()).hexdigest()[:12]
    path = Path(tempfile.gettempdir()) / f"pytest-vllm-measures-{digest}.lock"
    lock = FileLock(path, mode=0o666)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress.update("waiting for another run that measures this server")
        lock.acquire(timeout=QUEUE)
    try:
        yield
    finally:
        # Held until now: whoever waits for it sees that the file is gone, and makes a new one.
        path.unlink(missing_ok=True)
        lock.release()
