"""A load during which this process was held up is performed again: it says too little of the server."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.measure.measured import Measured
from pytest_vllm.measure.samples import Sample
from pytest_vllm.measure.workload import Workload
from pytest_vllm.report.progress import Progress
from pytest_vllm.run import bench
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from collections.abc import Sequence

SERVER = Server("http://127.0.0.1:1", "m")


def load(*held: tuple[float, float], error: str = "", lost: bool = True, cost: float = 1.0) -> Measured:
    sample = Sample("", 5.0, 5.0, None, (), 6.0, error=error, lost=lost and bool(error))
    return Measured("x", Workload(), samples=(sample,) * 9, window=(0.0, 20.0), held=held, cost=cost)


def performed(monkeypatch: pytest.MonkeyPatch, found: Sequence[Measured]) -> tuple[Measured, int, str]:
    """What came of it, how often it was performed, and what was said."""
    coming = list(found)
    said: list[str] = []

    def perform(*_: Any) -> Measured:
        return coming.pop(0)

    monkeypatch.setattr(bench, "perform", perform)
    progress = Progress(io.StringIO())
    monkeypatch.setattr(progress, "say", said.append)
    end = bench.unheld("x", Workload(), SERVER, progress)
    return end, len(found) - len(coming), " ".join(said)


GOOD = load()
HELD = load((2.0, 10.0))
EXCUSED = load((4.0, 4.5), error="the connection was closed")


@pytest.mark.parametrize("first", [HELD, EXCUSED])
def test_it_is_performed_again(monkeypatch: pytest.MonkeyPatch, first: Measured) -> None:
    found, times, said = performed(monkeypatch, [first, GOOD, GOOD])

    assert (found, times) == (GOOD, 2)
    assert said.startswith("x: this process was held up for ")
    assert said.endswith(": measured again")


def test_three_times_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    found, times, said = performed(monkeypatch, [HELD] * 5)

    assert (found, times, said.count("measured again")) == (HELD, 3, 2)


@pytest.mark.parametrize(
    "found",
    [
        GOOD,
        load((2.0, 3.0)),
        load((2.0, 10.0), cost=999.0),
        load((2.0, 10.0), error="HTTP 500", lost=False),
        load(error="the connection was closed"),
    ],
    ids=["never held", "for a moment", "too long a load", "the server's own failure", "failed, not held"],
)
def test_what_says_enough_stays(monkeypatch: pytest.MonkeyPatch, found: Measured) -> None:
    assert performed(monkeypatch, [found, GOOD])[:2] == (found, 1)
