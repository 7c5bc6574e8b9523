"""Short questions beside long prompts, judged though this process was held up meanwhile."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from pytest_vllm.measure.measured import Measured
from pytest_vllm.measure.samples import Sample
from pytest_vllm.measure.workload import Workload
from pytest_vllm.wire.recording import Undecided
from suites.throughput.test_load import test_fair as check_fair
from suites.throughput.test_load import test_no_stall as check_no_stall

#: Seconds of the load in which nobody looked: they lie in every wait for a first token.
HELD = (5.0, 9.0)
LONG = 14.0


def mixed(short: float, stall: float = 0.1) -> Measured:
    """Three short questions and a long prompt, sent at once, first answered after so many seconds.

    After 40 tokens a tenth of a second apart each short one pauses for `stall` seconds.
    """
    deltas = [short + at / 10 for at in range(40)]
    ones = [Sample("short", 0.0, 0.0, 0.0, [*deltas, deltas[-1] + stall], 90.0, tokens=41)] * 3
    ones.append(Sample("long", 0.0, 0.0, 0.0, [LONG], 90.0, tokens=1))
    known = ("It is Paris.", "It is Paris.")
    load = Workload(streams=4)
    return Measured(
        "throughput.mixed", load, samples=tuple(ones), window=(0.0, 99.0), alone=known, held=(HELD,)
    )


@pytest.mark.parametrize(
    ("short", "verdict"),
    [(29.9, None), (30.1, Undecided), (45.9, Undecided), (46.1, AssertionError)],
)
def test_fair(short: float, verdict: type[BaseException] | None) -> None:
    """Ten seconds of the long prompt's wait are sure, fourteen are possible."""
    with pytest.raises(verdict) if verdict else nullcontext():
        check_fair(mixed(short))


@pytest.mark.parametrize(
    ("stall", "verdict"),
    [(39.9, None), (40.5, Undecided), (55.9, Undecided), (56.5, AssertionError)],
)
def test_no_stall(stall: float, verdict: type[BaseException] | None) -> None:
    """Four times as long as the prompt takes to read: ten seconds, or up to fourteen."""
    with pytest.raises(verdict) if verdict else nullcontext():
        check_no_stall(mixed(20.0, stall))
