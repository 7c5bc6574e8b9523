"""Two servers in turns: A B B A, and what spoils a pair."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.declare.measurements import MeasurementSpec, PlannedMeasurement
from pytest_vllm.measure.measured import Measured
from pytest_vllm.measure.samples import Sample
from pytest_vllm.measure.workload import Kind, Workload
from pytest_vllm.profile.model import Profile, ServerPart
from pytest_vllm.report.progress import Progress
from pytest_vllm.run import interleaved as module
from pytest_vllm.run.interleaved import AT_ONCE_WHY, figures_of, interleaved, value_of
from pytest_vllm.run.state import ServerState
from pytest_vllm.wire.recording import NotRun
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OLDER, NEWER = "http://older", "http://newer"


class Terminal:
    """Keeps nothing."""

    hasmarkup = False

    def __getattr__(self, _name: str) -> Any:
        return lambda *_args, **_more: None


def answered(each: float) -> Sample:
    """A request of 21 tokens, `each` seconds apart."""
    deltas = [1 + each * n for n in range(21)]
    return Sample("all", 0.9, 0.9, 1.0, deltas, deltas[-1], 200, 8, 21)


class Servers:
    """Answers every piece of a load with tokens of even distance, by URL."""

    def __init__(self, older: float, newer: float) -> None:
        self.each = {OLDER: older, NEWER: newer}
        self.asked: list[str] = []
        self.spoil: Callable[[int], str] = lambda _number: ""

    def perform(self, key: str, workload: Workload, server: Server, _say: object) -> Measured:
        self.asked.append(server.url)
        one, spoiled = answered(self.each[server.url]), self.spoil(len(self.asked))
        return Measured(key, workload, samples=(one,), window=(0.0, 9.0), spoiled=spoiled)


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Servers:
    found = Servers(older=0.01, newer=0.02)
    monkeypatch.setattr(module, "perform", found.perform)
    monkeypatch.setattr(module, "speed_of", lambda _server: 1.0)
    return found


def load(id_: str = "throughput.one") -> PlannedMeasurement:
    return PlannedMeasurement(id_, MeasurementSpec(id_, lambda: Workload()))  # noqa: PLW0108 - it has a file


def measured(tmp_path: Path, *plan: PlannedMeasurement) -> module.Interleaved:
    profile = Profile(name="p", server=ServerPart(launcher="attach", url=OLDER))
    older, newer = (ServerState(profile, Server(url, "m"), tmp_path) for url in (OLDER, NEWER))
    return interleaved(older, newer, plan, Progress(Terminal(), tty=False), tmp_path, seconds=5.0)


def test_pieces_take_turns_and_only_their_ratios_are_kept(servers: Servers, tmp_path: Path) -> None:
    found = measured(tmp_path, load())

    assert servers.asked[:8] == [OLDER, NEWER, NEWER, OLDER] * 2
    pairs = found.loads["throughput.one"]["decode-tok-s"]
    assert len(pairs) == found.pairs == len(servers.asked) / 2
    assert list(pairs[0]) == pytest.approx([100.0, 50.0])


def test_loads_that_say_nothing_in_turns_are_left_out(servers: Servers, tmp_path: Path) -> None:
    def absent() -> Workload:
        raise NotRun("nothing is promised")

    fixed = PlannedMeasurement("b", MeasurementSpec("b", absent, weight=0))
    later = replace(load("c"), after={"x": "a"})
    gone = PlannedMeasurement("d", MeasurementSpec("d", absent))
    found = measured(tmp_path, fixed, later, load("soak.memory"), gone)

    assert (found.loads, found.left_out, servers.asked) == ({}, {"d": "nothing is promised"}, [])


def test_a_pair_of_which_one_is_spoiled_counts_for_neither(servers: Servers, tmp_path: Path) -> None:
    servers.spoil = lambda _number: "a process was lost"
    found = measured(tmp_path, load())

    assert (found.pairs, found.left_out) == (0, {"throughput.one": "a process was lost"})
    assert len(servers.asked) >= 2


def test_servers_that_answer_at_once_have_no_speed(servers: Servers, tmp_path: Path) -> None:
    servers.each = {OLDER: 0.0001, NEWER: 0.0001}

    assert measured(tmp_path, load()).why == AT_ONCE_WHY


def test_a_clock_that_is_slower_than_the_wall_is_a_slower_server() -> None:
    piece = Measured("x", Workload(), samples=(answered(0.01),), window=(0.0, 9.0))

    assert value_of(piece, "decode-tok-s", None) == pytest.approx(100)
    assert value_of(piece, "decode-tok-s", 0.9) == pytest.approx(90)
    assert value_of(piece, "ttft", 0.5) == pytest.approx(0.2)
    assert value_of(replace(piece, samples=()), "ttft", 1.0) is None


@pytest.mark.parametrize(
    ("workload", "figures"),
    [
        (Workload(), ("decode-tok-s", "ttft")),
        (Workload(streams=8), ("aggregate-tok-s", "ttft")),
        (Workload(kinds=(Kind(output=1),)), ("ttft",)),
        (Workload(kinds=(Kind(output=2),), cold=False), ("ttft-cached",)),
    ],
)
def test_a_load_is_about_few_figures(workload: Workload, figures: tuple[str, ...]) -> None:
    assert figures_of(workload) == figures
