"""What a measurement found, as checks read it and as it lies on disk."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_vllm.measure import canary, estimates
from pytest_vllm.measure.health import Doubt
from pytest_vllm.measure.held import excused, left, length, too_little
from pytest_vllm.measure.samples import Sample
from pytest_vllm.measure.statistics import LEAST, Interval, Outcome, Spending, percentile
from pytest_vllm.measure.workload import Workload
from pytest_vllm.wire.metrics import Metrics
from pytest_vllm.wire.recording import Undecided

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm.measure.held import Span

FORMAT = "pytest-vllm-measurement"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Point:
    """Gauges and counters of `/metrics` at a moment of the load, summed over engines, by name."""

    at: float
    values: Mapping[str, float]


@dataclass(frozen=True)
class Decided:
    """A bound, judged.

    Args:
        outcome: holds, fails or undecided.
        interval: the estimate, in the bound's unit; None when there is none.
        text: the whole of it in words.
    """

    outcome: Outcome
    interval: Interval | None
    text: str

    @property
    def holds(self) -> bool:
        """Whether the bound holds. Raises Undecided when that cannot be told."""
        if self.outcome is Outcome.OPEN:
            raise Undecided(self.text)
        return self.outcome is Outcome.HOLDS


#: So many requests at the end of a load that are lost raise the question whether the server is.
LAST = 3


@dataclass(frozen=True)
class Measured:
    """One measurement. Times are the server's seconds from the start of the load.

    Args:
        key: the measurement's key.
        workload: what was done.
        speed: the server's seconds per second of the wall; above 1 on a simulator only.
        simulated: whether the server was the simulator.
        samples: every request of the load, in order of sending.
        window: the scored part: from and to.
        timeline: scrapes while it ran.
        before: `/metrics` before the load; empty when there are none.
        after: and after it, idle again.
        alone: answers of canaries before and after the load.
        loaded: answers of canaries under load.
        looks: shares of the budget at which it was asked whether the goals are decided.
        stopped: why it ended: `decided`, `requests`, `budget`, or what broke.
        doubts: what about the client or the way to the server makes numbers uncertain.
        skipped: why it was not performed at all; empty when it was.
        spoiled: why nothing of it can be judged, as when a process that sent it was lost; empty when it can.
        drained: seconds until nothing ran or waited any more; None when that never came.
        held: when the client was held up: nothing that these times show is the server's.
        cost: seconds of the wall that the whole of it took.
        client: figures of the client itself: processor share, lag, events.
        hung: whether it ended because no byte of any answer came for long; the file does not say it.
    """

    key: str
    workload: Workload
    speed: float = 1.0
    simulated: bool = False
    samples: tuple[Sample, ...] = ()
    window: tuple[float, float] = (0.0, 0.0)
    timeline: tuple[Point, ...] = ()
    before: str = ""
    after: str = ""
    alone: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()
    looks: tuple[float, ...] = ()
    stopped: str = ""
    doubts: tuple[Doubt, ...] = ()
    skipped: str = ""
    spoiled: str = ""
    drained: float | None = None
    held: tuple[Span, ...] = ()
    cost: float = 0.0
    client: Mapping[str, float] = field(default_factory=dict)
    hung: bool = False

    @property
    def unanswered(self) -> bool:
        """Whether nobody may be there any more: its last requests were lost on their way."""
        return self.hung or (len(self.samples) > 0 and all(one.lost for one in self.samples[-LAST:]))

    @property
    def seconds(self) -> float:
        """Length of the scored window."""
        return self.window[1] - self.window[0]

    def scored(self, kind: str = "") -> list[Sample]:
        """The good requests of the window, of one kind or of all."""
        return [one for one in self.samples if one.scored and one.good and kind in ("", one.kind)]

    @cached_property
    def errors(self) -> list[str]:
        """What went wrong with requests, scored or not; without what may be the doing of a held-up client."""
        return [one.error for one in self.failed]

    @cached_property
    def failed(self) -> tuple[Sample, ...]:
        """Requests that failed, scored or not; without what may be the doing of a held-up client."""
        excused = set(map(id, self.excused))
        return tuple(one for one in self.samples if one.error and id(one) not in excused)

    @cached_property
    def excused(self) -> tuple[Sample, ...]:
        """Requests that failed on the way while the client was held up, or soon after: nobody's fault.

        An answer of the server's own stays a failure: that the client was slow does not make it wrong.
        """
        return tuple(excused(self.samples, self.held, self.speed))

    @property
    def held_for(self) -> float:
        """Seconds of the wall for which the client was held up, scored or not."""
        return length(self.held) / self.speed

    @cached_property
    def unsure(self) -> str:
        """Why it can't be told that no request failed; empty when it can."""
        if not self.excused:
            return ""
        return (
            f"this process was held up for {self.held_for:.2g} s, and {len(self.excused)} of "
            f"{len(self.samples)} requests failed around that time: {self.excused[0].error}"
        )

    @cached_property
    def held_up(self) -> str:
        """That the client was held up for so much of it that it says too little of the server, in words."""
        if too_little(self.window, self.held, self.workload.seconds):
            held = self.seconds - length(left(self.window, self.held))
            return (
                f"this process was held up for {held / self.speed:.2g} of {self.seconds / self.speed:.3g} s"
            )
        return self.unsure

    @cached_property
    def wrong(self) -> str:
        """Why the outputs are not right, so that no number of this load counts; empty when they are."""
        if self.spoiled:
            return self.spoiled
        if not self.samples:
            return "nothing was sent"
        if len(self.errors) * 100 > len(self.samples):
            return f"{len(self.errors)} of {len(self.samples)} requests failed: {self.errors[0]}"
        return canary.fault(self.alone, self.loaded, [one.text for one in self.samples if one.text])

    @cached_property
    def hits(self) -> float:
        """Prompt tokens of this load that the prefix cache had, by the server's counter or by `usage`."""
        counted = self.grown("vllm:prefix_cache_hits_total")
        told = float(sum(one.cached for one in self.samples))
        return max(counted or 0.0, told)

    def grown(self, name: str, **labels: str) -> float | None:
        """How much a counter of `/metrics` grew during the load; None when there is none, or no metrics."""
        before, after = Metrics(self.before), Metrics(self.after)
        if not self.before or not self.after or before.fault or after.fault:
            return None
        return after.delta(before, name, **labels)

    def doubt(self, name: str) -> str:
        """Why a figure cannot be trusted; empty when it can."""
        if self.spoiled:
            return self.spoiled
        if self.wrong:
            return f"the outputs were not right: {self.wrong}"
        if self.workload.cold and self.hits and not name.endswith("cached"):
            return f"{self.hits:.0f} prompt tokens came out of the prefix cache, and none should"
        found = [one.reason for one in self.doubts if not one.figures or name in one.figures]
        return found[0] if found else ""

    def interval(self, name: str, kind: str = "", error: float | None = None) -> Interval:
        """The estimate of a figure. Raises Undecided when too little was seen of it.

        Args:
            name: `decode-tok-s`, `aggregate-tok-s`, `prefill-tok-s`, `requests-s`, `goodput`, `ttft`,
                `tpot`, `e2e`; rates per second, times in seconds.
            kind: of one kind of request.
            error: probability of either end being wrong; of the last look unless given.
        """
        if self.spoiled:
            raise Undecided(f"{self.key}: {self.spoiled}")
        series = estimates.series(self, name, kind)
        if len(series.values) < LEAST:
            raise Undecided(
                f"{self.key}: {len(series.values)} values of {name} in {self.seconds:.3g} s decide nothing; "
                f"{LEAST} are the least"
            )
        return series.interval(Spending(looks=list(self.looks)).error if error is None else error)

    def enough(self, name: str, kind: str = "") -> bool:
        """Whether enough was seen of a figure to estimate it at all."""
        return len(estimates.series(self, name, kind).values) >= LEAST

    def sure(self, name: str) -> Interval:
        """The estimate of a figure that nothing speaks against. Raises Undecided."""
        if doubt := self.doubt(name):
            raise Undecided(f"{self.key}: {doubt}")
        return self.interval(name)

    def decide(
        self, name: str, *, floor: float | None = None, ceiling: float | None = None, kind: str = ""
    ) -> Decided:
        """Judge a bound: holds, fails, or undecided with the reason and what would decide it."""
        bound = f"{name}, {limits}" if (limits := _limits(name, floor, ceiling)) else name
        try:
            found = self.interval(name, kind)
        except Undecided as reason:
            return Decided(Outcome.OPEN, None, f"{bound}: {reason}")
        text = self.shown(name, found, limits)
        if doubt := self.doubt(name):
            return Decided(Outcome.OPEN, found, f"{text}; undecided: {doubt}")
        outcome = found.against(floor, ceiling)
        if outcome is Outcome.OPEN:
            text += f"; undecided after {self.seconds:.3g} of {self.workload.seconds:.3g} s: "
            more = found.more(floor, ceiling)
            text += (
                "at the bound, no time would decide it"
                if more is None
                else f"about {more * self.seconds:.0f} s would decide it"
            )
        return Decided(outcome, found, text)

    def shown(self, name: str, interval: Interval, limits: str = "") -> str:
        """`decode-tok-s 6.71, floor 6 (6.62 to 6.80, 98 %, n 240, 12.4 s)`, marked when it is simulated.

        What it is held to comes next to the value: a line of 80 columns holds both.
        """
        unit = " s" if name in estimates.TIMES else ""
        sure = f"{100 * (1 - 2 * interval.error):.4g} %"
        held = f", {limits}" if limits else ""
        what = f"{name} {interval.value:.4g}{unit}{held} ({interval.low:.4g} to {interval.high:.4g}, {sure}"
        mark = ", simulated" if self.simulated else ""
        return f"{what}, n {interval.n}, {self.seconds:.3g} s{mark})"

    def values(self, name: str, kind: str = "") -> Sequence[float]:
        """Every single value of a figure in the window: `ttft`, `tpot`, `itl`, `e2e`, `queued`."""
        return estimates.singles(self, name, kind)

    def waits(self, kind: str = "") -> Sequence[tuple[float, float]]:
        """Seconds to the first token of every request of the window, at least and at most.

        Unlike `values` it leaves none out: a client that was held up for a second of a minute's wait still
        says much about it.
        """
        return estimates.waits(self, kind)

    def percentile(self, name: str, share: float, kind: str = "") -> float:
        """A percentile of single values. Raises Undecided when there are none."""
        values = self.values(name, kind)
        if not values:
            raise Undecided(f"{self.key}: no {name} was seen")
        return percentile(values, share)

    def figures(self) -> dict[str, Interval]:
        """Every figure that can be estimated, by name."""
        found = {}
        for name in (*estimates.RATES, *estimates.TIMES):
            try:
                found[name] = self.interval(name)
            except Undecided:
                continue
        return found

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        values = {name: getattr(self, name) for name in _SIMPLE}
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            **values,
            "workload": self.workload.plain(),
            "samples": [one.plain() for one in self.samples],
            "timeline": [[one.at, dict(one.values)] for one in self.timeline],
            "doubts": [asdict(one) for one in self.doubts],
            "held": [list(one) for one in self.held],
        }

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Measured:
        """What `plain` gave. Raises ValueError when it is something else, or of a newer version."""
        if body.get("format") != FORMAT:
            raise ValueError(f"no measurement: its format is {body.get('format')!r}")
        if body["version"] > FORMAT_VERSION:
            raise ValueError(
                f"measurement version {body['version']} is newer than {FORMAT_VERSION}: update pytest-vllm"
            )
        # a file of an older one knows of nothing spoiled
        values = {name: _tuple(body.get(name, "") if name == "spoiled" else body[name]) for name in _SIMPLE}
        return cls(
            **values,
            workload=Workload.of(body["workload"]),
            samples=tuple(Sample.of(one) for one in body["samples"]),
            timeline=tuple(Point(at, found) for at, found in body["timeline"]),
            doubts=tuple(Doubt(one["reason"], tuple(one["figures"])) for one in body["doubts"]),
            held=tuple((begin, end) for begin, end in body.get("held", ())),
        )


_SIMPLE = tuple(
    name
    for name in Measured.__dataclass_fields__
    if name not in ("workload", "samples", "timeline", "doubts", "held")
)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _limits(name: str, floor: float | None, ceiling: float | None) -> str:
    """`floor 6`, `limit 0.5 s`; empty where nothing is promised."""
    unit = " s" if name in estimates.TIMES else ""
    found = [f"floor {floor:.4g}{unit}"] if floor is not None else []
    found += [f"limit {ceiling:.4g}{unit}"] if ceiling is not None else []
    return ", ".join(found)
