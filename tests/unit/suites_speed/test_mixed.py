"""Short questions beside long prompts, judged though this process was held up meanwhile."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from pytest_vllm.measure.health import Doubt
from pytest_vllm.measure.measured import Measured
from pytest_vllm.measure.samples import Sample
from pytest_vllm.measure.workload import Workload
from pytest_vllm.wire.recording import Undecided
from suites.throughput.test_load import test_fair as check_fair
from suites.throughput.test_load import test_no_stall as check_no_stall

#: Seconds of the load in which nobody looked: they lie in every wait for a first token.
HELD = (5.0, 9.0)
LONG = 14.0


def mixed(short: float, stall: float = 0.1, *, long: float = LONG, **more: Any) -> Measured:
    """Three short questions and a long prompt, sent at once, first answered after so many seconds.

    After 40 tokens a tenth of a second apart each short one pauses for `stall` seconds.
    """
    deltas = [short + at / 10 for at in range(40)]
    ones = [Sample("short", 0.0, 0.0, 0.0, [*deltas, deltas[-1] + stall], 90.0, tokens=41)] * 3
    ones.append(Sample("long", 0.0, 0.0, 0.0, [long], 90.0, tokens=1))
    known = ("It is Paris.", "It is Paris.")
    load = Workload(streams=4)
    every = {"samples": tuple(ones), "window": (0.0, 99.0), "alone": known, "held": (HELD,), **more}
    return Measured("throughput.mixed", load, **every)


@pytest.mark.parametrize(
    ("short", "verdict"),
    [(29.9, None), (30.1, Undecided), (45.9, Undecided), (46.1, AssertionError)],
)
def test_fair(short: float, verdict: type[BaseException] | None) -> None:
    """Ten seconds of the long prompt's wait are sure, fourteen are possible."""
    with pytest.raises(verdict) if verdict else nullcontext():
        check_fair(mixed(short))


@pytest.mark.parametrize(
    ("short", "long", "verdict"),
    [(0.03, 0.03, None), (0.03, 0.3, Undecided), (0.6, 0.03, Undecided)],
)
def test_what_a_proxy_adds(short: float, long: float, verdict: type[BaseException] | None) -> None:
    """Where the server counts less than the client, first tokens within a quarter of a second are fair."""
    held_up = (Doubt("mean ttft is 0.03 s here and 0.003 s in the server's histogram", ("ttft",)),)
    with pytest.raises(verdict) if verdict else nullcontext():
        check_fair(mixed(short, long=long, held=(), doubts=held_up))
    spoiled = mixed(short, long=long, held=(), doubts=held_up, spoiled="the server died")
    with pytest.raises(Undecided):
        check_fair(spoiled)


@pytest.mark.parametrize(
    ("stall", "verdict"),
    [(39.9, None), (40.5, Undecided), (55.9, Undecided), (56.5, AssertionError)],
)
def test_no_stall(stall: float, verdict: type[BaseException] | None) -> None:
    """Four times as long as the prompt takes to read: ten seconds, or up to fourteen."""
    with pytest.raises(verdict) if verdict else nullcontext():
        check_no_stall(mixed(20.0, stall))
