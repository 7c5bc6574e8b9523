"""One load against another: of the same run, or of a baseline, and what that keeps of it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from pytest_vllm.measure.estimates import TIMES
from pytest_vllm.measure.measured import Decided
from pytest_vllm.measure.statistics import Interval, Outcome, ratio_interval
from pytest_vllm.wire.recording import Undecided

if TYPE_CHECKING:
    from pytest_vllm.decide.baseline import Baseline
    from pytest_vllm.measure.measured import Measured

#: What of a workload is how long it may take, and not what is done.
_HOW_LONG = ("seconds", "goals", "patience")


def kept(measured: Measured) -> dict[str, Any]:
    """What a baseline keeps of a load: its workload and every figure that nothing speaks against, as JSON."""
    found = {name: asdict(figure) for name, figure in measured.figures().items() if not measured.doubt(name)}
    return {"workload": _load(measured), "figures": found} if found else {}


def regressed(
    measured: Measured, name: str, baseline: Baseline, fraction: float, hardware: str = ""
) -> Decided:
    """Whether a figure is not worse than the baseline's by more than a fraction of it.

    Both were measured apart, so the noise of both counts. Undecided where the baseline tells nothing of it,
    or was taken under another load, on other hardware, or on a simulator.

    Args:
        measured: the load of this run.
        name: of a rate, which may not fall, or a time, which may not grow.
        baseline: what was true.
        fraction: how much worse it may be, of the baseline's value.
        hardware: the profile's, now.
    """
    try:
        now = measured.sure(name)
        then = _before(measured, name, baseline, hardware)
    except Undecided as reason:
        return Decided(Outcome.OPEN, None, str(reason))
    ratio = ratio_interval(now, then)
    floor, ceiling = (None, 1 + fraction) if name in TIMES else (1 - fraction, None)
    outcome = ratio.against(floor, ceiling)
    sure = f"{100 * (1 - 2 * ratio.error):.4g} %"
    limit = f"at least {floor:.3g}" if floor is not None else f"at most {ceiling:.3g}"
    text = (
        f"{name} {ratio.value:.3f} times the baseline's, allowed {limit} times ({then.value:.4g} of "
        f"{baseline.taken}, vLLM {baseline.version}; {ratio.low:.3f} to {ratio.high:.3f}, {sure}, "
        f"n {now.n} and {then.n}{', simulated' * measured.simulated})"
    )
    if outcome is Outcome.OPEN:
        alone = ratio_interval(replace(now, low=now.value, high=now.value), then)
        more = None if alone.against(floor, ceiling) is Outcome.OPEN else ratio.more(floor, ceiling)
        text += (
            "; undecided: at the limit, or the baseline is too uncertain: save one of a longer load"
            if more is None
            else f"; undecided: about {more * measured.seconds:.0f} s of load would decide it"
        )
    return Decided(outcome, ratio, text)


def times(now: Measured, before: Measured, name: str) -> Interval:
    """How many times a figure of another load it is in this one, with the noise of both.

    Raises Undecided where one of them is not known.
    """
    return ratio_interval(now.sure(name), before.sure(name))


def _before(measured: Measured, name: str, baseline: Baseline, hardware: str) -> Interval:
    """The figure of the baseline. Raises Undecided where it is none of this load on this deployment."""
    before = baseline.loads.get(measured.key, {})
    where = f"the baseline of {baseline.taken}"
    fault = ""
    if name not in before.get("figures", {}):
        fault = f"{where} has no {name} of {measured.key}"
    elif baseline.simulated != measured.simulated:
        fault = f"{where} was taken on {'a simulator' if baseline.simulated else 'a real server'}"
    elif baseline.hardware != hardware:
        fault = f"{where} was taken on other hardware, {baseline.hardware!r}, and this is {hardware!r}"
    elif before["workload"] != _load(measured):
        fault = f"{where} was taken under another load: {json.dumps(before['workload'])[:200]}"
    if fault:
        raise Undecided(f"{fault}; save one of this deployment with --vllm-save-baseline=FILE")
    return Interval(**before["figures"][name])


def _load(measured: Measured) -> dict[str, Any]:
    plain = {key: value for key, value in measured.workload.plain().items() if key not in _HOW_LONG}
    same: dict[str, Any] = json.loads(json.dumps(plain))
    return same
