"""Two servers that live at once, measured in turns (A B B A …): what disturbs one disturbs the other.

Every load of the gate that has a share of the budget is cut into short pieces. Each piece on one server has
its twin on the other, right before or after it; only the ratios of twins are judged.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from typing import TYPE_CHECKING

from pytest_vllm.measure import estimates
from pytest_vllm.measure.run import perform, speed_of
from pytest_vllm.run.aside import Latest
from pytest_vllm.run.bench import Bench, alone
from pytest_vllm.wire.recording import NotRun, Undecided

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_vllm.declare.measurements import PlannedMeasurement
    from pytest_vllm.measure.measured import Measured
    from pytest_vllm.measure.workload import Workload
    from pytest_vllm.report.progress import Progress
    from pytest_vllm.run.state import ServerState

#: Seconds of the wall for all loads on both servers, and within a profile's budget.
SECONDS = 80.0
#: Pairs that a load needs, for which it may take this many times its share; and pairs that are enough.
LEAST, LONGER, MOST = 4, 2.0, 40
#: Seconds of the wall that a piece of a load lasts, where it has no number of requests.
PIECE = 0.8
#: And that one answer may take.
ANSWER = 60.0
#: Tokens of an answer up to which a load is about its prompt.
SHORT = 8
#: Tokens of a prompt whose reading is a speed.
LONG = 256
#: Seconds per token of the server's clock below which nothing is computed, as by a simulator without speeds.
AT_ONCE = 0.001
AT_ONCE_WHY = "these servers answer at once, so their speeds are those of the machine they run on"
SOAK = "soak."


@dataclass
class Interleaved:
    """What two servers showed in turns.

    Args:
        loads: load -> figure -> (older, newer) of each pair, in order of time; rates per second, seconds.
        left_out: load -> why nothing is known of it.
        why: why nothing was measured at all; empty when it was.
        seconds: of the wall that it took.
    """

    loads: dict[str, dict[str, list[tuple[float, float]]]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    why: str = ""
    seconds: float = 0.0

    @property
    def pairs(self) -> int:
        """Pairs of all loads."""
        return sum(max(map(len, figures.values()), default=0) for figures in self.loads.values())


def interleaved(
    older: ServerState,
    newer: ServerState,
    plan: Sequence[PlannedMeasurement],
    progress: Progress,
    rootdir: Path,
    *,
    seconds: float = SECONDS,
) -> Interleaved:
    """Measure both servers by the same loads, in turns.

    Args:
        older: the server that is compared with.
        newer: the one under test.
        plan: loads of the gate.
        progress: told how far it is.
        rootdir: where hardware and model files of the person lie.
        seconds: of the wall, for all of it.
    """
    begun, found = time.perf_counter(), Interleaved()
    loads = [one for one in plan if one.spec.weight and not one.after and not one.spec.id.startswith(SOAK)]
    if any(state.server.simulated and state.profile.hardware == "sim" for state in (older, newer)):
        found.why = AT_ONCE_WHY
        return found
    speeds = [speed_of(state.server) for state in (older, newer)]
    # only a simulator tells of a clock of its own, and its own counts are judged as everywhere
    counted = all(speed != 1 for speed in speeds) or older.server.simulated
    sides = [
        Side(replace(state, server=replace(state.server, simulated=counted)), speed, progress)
        for state, speed in zip((older, newer), speeds, strict=True)
    ]
    left = min(seconds, newer.profile.measure.budget)
    progress.phase("measure", "both servers in turns")
    with ExitStack() as stack:
        for url in sorted({state.server.url for state in (older, newer)}):
            stack.enter_context(alone(url, progress))
        for place, one in enumerate(loads):
            since = time.perf_counter()
            _measure(one, sides, left / (len(loads) - place), rootdir, found)
            left = max(left - (time.perf_counter() - since), 0.0)
            if found.why:
                return Interleaved(why=found.why)
    found.seconds = round(time.perf_counter() - begun, 3)
    progress.done(f"{found.pairs} pairs of {len(found.loads)} loads in turns")
    return found


@dataclass(frozen=True)
class Side:
    """One of the two servers, and how fast its clock runs against the wall's."""

    state: ServerState
    speed: float
    progress: Progress

    def workload(self, one: PlannedMeasurement, rootdir: Path) -> Workload:
        """What a piece of a load is on this server. Raises NotRun and Undecided as the measurement does."""
        declared = Bench(self.state, rootdir, PIECE * self.speed, PIECE * self.speed).workload(one, {})
        lone = declared.streams == 1 and not declared.open_loop
        talks = (declared.kinds[0].output or SHORT) > SHORT
        # one answer to its end; of counts some are taken while they grow
        whole = lone and talks and not self.state.server.simulated
        return replace(
            declared,
            seconds=(ANSWER if whole else PIECE) * self.speed,
            requests=1 if whole else None,
            goals=(),
            warmup=1,  # it also shows how fast the server's clock runs
        )

    def performed(self, key: str, workload: Workload, *, first: bool) -> Measured:
        """A piece of a load; the first one is asked with canaries, to see that outputs are right."""
        with Latest(self.progress.measuring) as say:
            piece = replace(workload, canary=first)
            return perform(key, piece, self.state.server, say)


def _measure(
    one: PlannedMeasurement, sides: Sequence[Side], share: float, rootdir: Path, found: Interleaved
) -> None:
    """Measure one load until its share of the time is spent."""
    try:
        loads = [side.workload(one, rootdir) for side in sides]
    except (NotRun, Undecided) as reason:
        found.left_out[one.key] = str(reason)
        return
    except Exception as error:  # noqa: BLE001 - a builder is a person's own code; the gate has said it
        found.left_out[one.key] = f"no load was sent: {error}"
        return
    if replace(loads[0], seconds=0.0) != replace(loads[1], seconds=0.0):
        found.left_out[one.key] = "the two servers take another load: they batch or hold other numbers"
        return
    begun, tried, good = time.perf_counter(), 0, 0
    while tried < MOST:
        spent = time.perf_counter() - begun
        each = spent / tried if tried else 0.0
        if spent + each > share and (good >= LEAST or spent + each > LONGER * share):
            break
        pair = _pair(one.key, sides, loads, tried)
        tried += 1
        if wrong := next((why for piece in pair if (why := _wrong(piece))), ""):
            found.left_out[one.key] = wrong
            continue
        if _at_once(pair):
            found.why = AT_ONCE_WHY
            return
        good += _take(pair, sides, found.loads.setdefault(one.key, {}))
    if good:
        found.left_out.pop(one.key, None)


def _pair(key: str, sides: Sequence[Side], loads: Sequence[Workload], tried: int) -> list[Measured]:
    """A piece on each server, the older one's first in the list; which is performed first takes turns."""
    order = (0, 1) if tried % 2 == 0 else (1, 0)
    pieces = {at: sides[at].performed(key, loads[at], first=not tried) for at in order}
    return [pieces[0], pieces[1]]


def _wrong(piece: Measured) -> str:
    return piece.wrong or piece.held_up


def _at_once(pair: Sequence[Measured]) -> bool:
    """Whether no speed is computed, or simulated, as far as this load tells."""
    times = [one.tpot for piece in pair for one in piece.samples if one.tpot is not None]
    return bool(times) and median(times) < AT_ONCE


def _take(
    pair: Sequence[Measured], sides: Sequence[Side], figures: dict[str, list[tuple[float, float]]]
) -> bool:
    """Add what a pair shows to the figures of its load; whether it shows anything."""
    walls = max(side.speed for side in sides) <= 1
    any_ = False
    for name in figures_of(pair[0].workload):
        if any(piece.doubt(name) for piece in pair):
            continue
        values = [
            value_of(piece, name, side.speed if walls else None)
            for piece, side in zip(pair, sides, strict=True)
        ]
        if values[0] and values[1]:
            figures.setdefault(name, []).append((values[0], values[1]))
            any_ = True
    return any_


def figures_of(workload: Workload) -> tuple[str, ...]:
    """The figures that a load is about: few, since each costs the others certainty."""
    kind = workload.kinds[0]
    if workload.streams > 1 or workload.open_loop:
        return ("aggregate-tok-s", "ttft")
    if (kind.output or SHORT) > SHORT:
        return ("decode-tok-s", "ttft")
    if not workload.cold:
        return ("ttft-cached",)
    return ("prefill-tok-s",) if kind.prompts.tokens >= LONG else ("ttft",)


def value_of(piece: Measured, name: str, wall: float | None) -> float | None:
    """A figure of one piece, however few values it has; None without any.

    Args:
        piece: of a load.
        name: of the figure.
        wall: how fast the server's clock runs, where figures are to be the wall's, as its clients see them;
            None: by the server's clock, of a simulator that runs faster than life.
    """
    series = estimates.series(piece, name)
    if not series.values:
        return None
    value = median(series.values) if series.middle else fmean(series.values)
    if value <= 0:
        return None
    figure = 1 / value if series.inverse else value
    if wall is None:
        return figure
    return figure / wall if name in estimates.TIMES else figure * wall
