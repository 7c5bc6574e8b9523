"""A batch on a slow server: what few deltas its streams got are estimated all the same, and less exactly."""

from __future__ import annotations

import pytest

from pytest_vllm.measure.measured import Measured
from pytest_vllm.measure.samples import Sample
from pytest_vllm.measure.workload import Kind, Workload
from pytest_vllm.wire.recording import Undecided

STREAMS, SECONDS = 16, 40.0


def measured(deltas: int) -> Measured:
    """Sixteen streams, each with so many deltas of one token, evenly over the window."""
    gap = SECONDS / deltas
    at = tuple(gap * (number + 0.5) for number in range(deltas))
    sample = Sample(kind="many", intended=0.0, sent=0.0, headers=0.0, deltas=at, end=SECONDS, tokens=deltas)
    load = Workload(streams=STREAMS, kinds=(Kind("many"),), seconds=SECONDS)
    return Measured("x", load, samples=(sample,) * STREAMS, window=(0.0, SECONDS))


@pytest.mark.parametrize("deltas", [16, 35, 40, 400])
def test_a_rate_over_all_streams(deltas: int) -> None:
    found = measured(deltas).interval("aggregate-tok-s")

    assert found.value == pytest.approx(STREAMS * deltas / SECONDS, rel=0.05)
    assert found.low <= STREAMS * deltas / SECONDS <= found.high


def test_too_few_decide_nothing() -> None:
    with pytest.raises(Undecided, match="7 values of aggregate-tok-s"):
        measured(15).interval("aggregate-tok-s")
