"""A machine on which a healthy server may well stand still is told from one that has time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.run.pressure import Pressure, between, read

if TYPE_CHECKING:
    from pathlib import Path

QUIET = Pressure(at=100.0, load=2.0, processors=2)


@pytest.mark.parametrize(
    ("grown", "starves", "said"),
    [
        ({}, False, "load 1 per processor"),
        ({"waited": 9.0}, False, "tasks waited for one in 90 % of the time"),  # as beside any busy server
        ({"waited": 9.0, "load": 8.0}, True, "load 4 per processor"),
        ({"waited": 1.0, "load": 8.0}, False, "10 %"),
        ({"stolen": 6.0}, True, "the hypervisor took 30 %"),
        ({"stolen": 2.0}, False, "the hypervisor took 10 %"),
        ({"throttled": 4.0}, True, "the cgroup's quota took 40 %"),
        ({"memory": 3.0}, True, "everything waited for memory in 30 %"),
        ({"disk": 3.0}, True, "everything waited for the disk in 30 %"),
    ],
)
def test_what_ten_seconds_were_like(grown: dict[str, Any], starves: bool, said: str) -> None:
    strain = between(QUIET, replace(QUIET, at=110.0, **grown))

    assert strain.starves is starves
    assert said.replace(" %", "%") in strain.text


def test_the_kernels_files_are_read(tmp_path: Path) -> None:
    files = {
        "proc/stat": "cpu  10 0 20 30 0 0 0 250 0 0\ncpu0 1\n",
        "proc/loadavg": "3.50 2.00 1.00 2/300 4711\n",
        "proc/pressure/cpu": "some avg10=1.00 avg60=1.00 avg300=1.00 total=4000000\nfull avg10=0 total=9\n",
        "proc/pressure/memory": "some avg10=0 total=7\nfull avg10=0 avg60=0 avg300=0 total=500000\n",
        "proc/pressure/io": "full avg10=0 avg60=0 avg300=0 total=1500000\n",
        "sys/fs/cgroup/cpu.stat": "usage_usec 7\nnr_throttled 3\nthrottled_usec 2000000\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")

    found = read(tmp_path)

    assert (found.stolen, found.throttled, found.waited) == (2.5, 2.0, 4.0)
    assert (found.memory, found.disk, found.load) == (0.5, 1.5, 3.5)


def test_a_system_that_tells_nothing_excuses_nothing(tmp_path: Path) -> None:
    before = read(tmp_path)

    assert not between(before, replace(read(tmp_path), at=before.at + 9)).starves
