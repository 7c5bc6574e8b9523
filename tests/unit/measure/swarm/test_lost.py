"""A worker that is lost, never comes, or loses records: the load counts for nothing, and nothing is left."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from pytest_vllm.measure.run import perform
from pytest_vllm.measure.statistics import Outcome
from pytest_vllm.measure.swarm import crew as crews
from pytest_vllm.measure.swarm.crew import Crew, Spoiled
from pytest_vllm.measure.swarm.spread import Spread
from pytest_vllm.measure.workload import Kind, Prompts, Script, Workload
from tests.unit.measure.swarm.conftest import address_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.measure.swarm.conftest import Null

LOAD = Workload(
    streams=4,
    kinds=(Kind("null", Prompts(16), output=None),),
    seconds=30.0,
    warmup=0,
    canary=False,
    cold=False,
)


def children() -> list[psutil.Process]:
    """Processes of crews that this one has started."""
    return [one for one in psutil.Process().children(recursive=True) if "swarm" in " ".join(one.cmdline())]


@pytest.mark.parametrize("lost", [signal.SIGKILL, signal.SIGSTOP])
def test_a_lost_worker_spoils_the_load_and_those_after_it(null: Null, lost: signal.Signals) -> None:
    with Crew(2) as both:
        (worker,) = [one for one in children() if "--name=worker 2" in one.cmdline()]

        def once_it_runs(text: str) -> None:
            if "4 in flight" in text and worker.is_running():
                os.kill(worker.pid, lost)

        measured = perform("swarm", LOAD, null.server, once_it_runs, both)
        sent = len(null.truth())
        after = perform("later", LOAD, null.server, crew=both)

    why = "killed by signal 9" if lost is signal.SIGKILL else "it has left"
    assert measured.spoiled.startswith(f"worker 2 of this load was lost ({why})")
    decided = measured.decide("decode-tok-s", floor=1.0)
    assert (decided.outcome, decided.interval) == (Outcome.OPEN, None)
    assert measured.spoiled in decided.text
    assert sent >= 4
    assert (after.spoiled, after.samples, null.truth()) == (measured.spoiled, (), [])
    assert children() == []


def test_a_worker_that_never_joins_is_told_with_how_to_start_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crews, "JOIN", 0.2)
    said: list[str] = []
    with Crew(0, elsewhere=1, say=said.append) as one:
        broken = one.broken

    assert broken.startswith("1 of 1 workers have not joined 127.0.0.1:")
    assert "; on another machine one is started by: pytest-vllm load-worker 127.0.0.1:" in broken
    assert said[0] in broken
    assert children() == []


def test_an_address_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, Crew(1, address=address_of(taken)) as one:
        assert one.broken.startswith("the master of this load was lost (it ended with status 1")


def test_workers_of_another_machine_take_part_and_end_with_the_run(null: Null) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = address_of(free)
    command = [sys.executable, "-m", "pytest_vllm.cli", "load-worker", address]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as foreign:
        with Crew(1, elsewhere=1, address=address) as both:
            names = list(both.names.values())
            measured = perform("swarm", Workload(**{**vars(LOAD), "requests": 8}), null.server, crew=both)
        status = foreign.wait(10)

    assert names == ["worker 1", f"worker 2 on {socket.gethostname()}"]
    assert (len(measured.samples), measured.spoiled, status) == (8, "", 0)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_whoever_ends_pytest_leaves_nothing_behind(end: signal.Signals) -> None:
    text = "from pytest_vllm.measure.swarm.crew import Crew\nwith Crew(2): print(flush=True); input()"
    command = [sys.executable, "-c", text]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "\n"
        left = psutil.Process(parent.pid).children(recursive=True)
        parent.send_signal(end)

    assert len(left) == 3
    assert psutil.wait_procs(left, timeout=60)[1] == []


class Silent(Crew):
    """A crew of one worker, which tells what a test lets it tell."""

    def __init__(self, *told: dict[str, Any]) -> None:
        super().__init__(1)
        self.names = {"id": "worker 1"}
        self._script = [{"is": "worker", "worker": "id", "load": 1, **one} for one in told]

    def order(self, do: str, **more: Any) -> None:
        """Nobody listens."""

    def news(self, longest: float = 0.0) -> Iterator[dict[str, Any]]:
        del longest
        told, self._script = self._script, []
        yield from told


ROW = {"kind": "null", "intended": 0.0, "sent": 0.0, "headers": None, "deltas": "", "end": 1.0}


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ([{"what": "samples", "first": 200, "samples": [ROW]}], "its records 0 to 200 never came"),
        (
            [
                {"what": "samples", "first": 0, "samples": [ROW]},
                {"what": "closed", "sent": 3, "footprint": {"samples": 1}},
            ],
            "1 records of 3 sent",
        ),
        ([{"what": "failed", "why": "ConnectionError: refused"}], "could not send its part: ConnectionError"),
    ],
)
def test_records_that_are_missing_are_noticed(null: Null, told: list[dict[str, Any]], why: str) -> None:
    load = Spread(Silent(*told), LOAD, null.server, Script(LOAD, ""))

    with pytest.raises(Spoiled, match=why):
        load.finish("too late")
