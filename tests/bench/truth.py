"""The calibrator as a process, and what it wrote down of the streams that it served."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import httpx

from pytest_vllm.measure.statistics import percentile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Seconds from a request to its first event.
FIRST = 0.05


@dataclass(frozen=True)
class Pair:
    """The median and the 99th percentile of a latency, in seconds."""

    p50: float
    p99: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Pair:
        """Of single values. Raises ValueError when there are none."""
        if not values:
            raise ValueError("no values")
        return cls(median(values), percentile(values, 0.99))

    @property
    def text(self) -> str:
        """In milliseconds."""
        return f"{self.p50 * 1e3:.1f} / {self.p99 * 1e3:.1f}"


@dataclass(frozen=True)
class Truth:
    """What the server wrote down: for every stream when its request came, and when its words went out."""

    rows: Sequence[dict[str, Any]]

    @property
    def ttft(self) -> Pair:
        """From a request's arrival to its first word."""
        return Pair.of([one["written"][0] - one["arrived"] for one in self.rows])

    @property
    def itl(self) -> Pair:
        """Between two words of a stream."""
        return Pair.of([b - a for one in self.rows for a, b in pairwise(one["written"])])

    @property
    def words(self) -> int:
        """All that went out."""
        return sum(len(one["written"]) for one in self.rows)

    @property
    def at_once(self) -> int:
        """How many streams ran at the same time, at most."""
        ends = [(one["written"][-1], -1) for one in self.rows]
        going = most = 0
        for _, step in sorted([(one["arrived"], 1) for one in self.rows] + ends):
            going += step
            most = max(most, going)
        return most


@dataclass
class Calibrator:
    """A calibrator that runs."""

    port: int

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def truth(self) -> Truth:
        """What it wrote down since it began; streams that nobody read to a first word are left out."""
        rows = httpx.get(f"{self.url}/truth", timeout=30, trust_env=False).json()
        return Truth([one for one in rows if one["written"]])


@contextlib.contextmanager
def calibrator(gap: float, events: int) -> Iterator[Calibrator]:
    """A fresh one, on the first core: so many words a stream, `gap` seconds apart."""
    command = [sys.executable, "-m", "tools.calibrator"]
    command += ["--first", str(FIRST), "--gap", str(gap), "--events", str(events)]
    with subprocess.Popen([*pinned(0), *command], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield Calibrator(int(server.stdout.readline()))
        finally:
            server.terminate()


def pinned(core: int) -> list[str]:
    """The words before a command that keep it on one core."""
    cores = sorted(os.sched_getaffinity(0))
    return ["taskset", "-c", str(cores[core % len(cores)])]
