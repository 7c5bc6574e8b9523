"""What becomes of a load that was held up, or after which nobody answers, and of those that come after it."""

from __future__ import annotations

import io
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_vllm.declare.measurements import Measurements
from pytest_vllm.measure.measured import Measured
from pytest_vllm.measure.samples import Sample
from pytest_vllm.measure.workload import Workload
from pytest_vllm.profile.model import Profile, ServerPart
from pytest_vllm.report.progress import Progress
from pytest_vllm.run import bench
from pytest_vllm.run.state import ServerState
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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


def test_time_in_which_nothing_could_be_done_is_not_held_against_another_try(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A machine that stood still for two of three minutes has cost the load one."""
    stood = replace(load((2.0, 122.0), cost=180.0), window=(0.0, 130.0))

    assert performed(monkeypatch, [stood, GOOD])[:2] == (GOOD, 2)


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


HUNG = replace(load(error="given up"), hung=True)
LOST = load(error="the connection broke")


class Plan:
    """A measurement that is wanted; what it gives is known."""

    def __init__(self, key: str) -> None:
        self.key, self.spec = key, SimpleNamespace(weight=1.0)


def all_of(
    monkeypatch: pytest.MonkeyPatch, folder: Path, found: Sequence[Measured], gone: str
) -> tuple[dict[str, Any], list[Measured]]:
    """What the phase tells, and what was kept of three loads."""
    coming = list(found)
    monkeypatch.setattr(bench, "_measured", lambda one, *_: replace(coming.pop(0), key=one.key))
    monkeypatch.setattr(bench, "speed_of", lambda _: 1.0)
    profile = Profile(name="p", server=ServerPart(launcher="attach", url=SERVER.url, model="m"))
    plan = cast("Any", [Plan("a"), Plan("b"), Plan("c")])
    progress = Progress(io.StringIO())
    state = ServerState(profile, SERVER, folder)
    told = bench.measure_all(state, plan, progress, folder, gone=lambda: gone)
    assert not coming
    return told, [Measurements(folder).get(one.key) for one in plan]


@pytest.mark.parametrize("first", [HUNG, LOST])
def test_nothing_is_measured_after_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, first: Measured
) -> None:
    """What was lost by it accuses nobody, and what was to come is not begun: the end is the finding."""
    told, (a, b, c) = all_of(monkeypatch, tmp_path, [first], "the server hangs")

    assert told["stopped"] == a.spoiled == b.stopped == c.stopped == "the server hangs"
    assert not b.samples


@pytest.mark.parametrize(
    ("found", "again"),
    [([HUNG, GOOD, GOOD, GOOD], True), ([LOST, GOOD, GOOD], False), ([GOOD, GOOD, GOOD], False)],
    ids=["stood still", "lost, and lives", "good"],
)
def test_a_server_that_lives_is_measured_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: list[Measured], again: bool
) -> None:
    """One that had stood still is measured again; what one that lives has lost is its failure."""
    told, kept = all_of(monkeypatch, tmp_path, found, "")

    assert "stopped" not in told
    assert [one.spoiled for one in kept] == [""] * 3
    assert bool(kept[0].errors) is (found[0] is LOST)
    assert again is (found[0] is HUNG)
