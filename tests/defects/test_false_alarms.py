"""A sample of the 100 runs of `python -m tests.defects.false_alarms`: no healthy server is accused."""

from __future__ import annotations

import pytest

from tests.defects.false_alarms import run_all, sample, versions

RUNS = 8


def test_the_sample_spans_the_versions() -> None:
    sampled = [version for version, _ in sample(RUNS)]

    assert len(set(sampled)) == RUNS
    assert sampled[0] == versions()[0]
    assert versions().index(sampled[-1]) > 3 * len(versions()) // 4


@pytest.mark.matrix
def test_a_healthy_server_is_not_accused() -> None:
    alarms = run_all(RUNS)

    assert {f"{one.version} seed {one.seed}": one.failed for one in alarms if one.failed} == {}
    assert min(one.decided for one in alarms) > 100
