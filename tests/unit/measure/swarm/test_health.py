"""Whether one of several clients was the limit, and whether their clocks are known well enough."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_vllm.measure.health import doubts
from pytest_vllm.measure.load import Load
from pytest_vllm.measure.samples import Sample
from pytest_vllm.measure.sender import Footprint
from pytest_vllm.measure.swarm.clocks import Offset
from pytest_vllm.measure.swarm.crew import Crew
from pytest_vllm.measure.swarm.spread import Spread, Told
from pytest_vllm.measure.workload import Script, Workload
from pytest_vllm.wire.server import Server

#: Four streams without a pause, two a worker, and a window of eight seconds.
BUSY = [Sample("x", 0.0, 0.0, None, [1.0, 1.1, 1.2], 10.0, tokens=3) for _ in range(4)]
WINDOW = (1.0, 9.0)
WORKLOAD = Workload(streams=4)


class Sent(Spread):
    """A load that two workers have sent."""

    def __init__(self, *prints: Footprint) -> None:
        crew = Crew(2)
        crew.names = {"a": "worker 1", "b": "worker 2"}
        super().__init__(crew, WORKLOAD, Server("http://127.0.0.1:1", "m"), Script(WORKLOAD, ""))
        self.told, self._prints = self._told, prints

    def footprints(self) -> list[Footprint]:
        return list(self._prints)


def told(samples: list[Sample], *prints: Footprint) -> list[str]:
    """What speaks against figures of a load with these records, worker by worker."""
    talk: Any = None
    load = Load("x", WORKLOAD, talk, Sent(*prints), 1.0, 4, lambda _: None, begin=0.0, steady=1.0, end=9.0)
    return [one.reason for client, own in load.clients(samples) for one in doubts(client, own, 1.0)]


def sent_by(who: str, **more: Any) -> Footprint:
    return Footprint(**{"cpu": 1.0, "lags": [0.0001] * 9, "who": who, "streams": 2, "samples": 2, **more})


def test_nothing_speaks_against_two_idle_clients() -> None:
    assert told(BUSY, sent_by("worker 1"), sent_by("worker 2")) == []


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ({"cpu": 7.0}, "worker 2: the client was the limit: it took 88% of a processor core"),
        ({"lags": [0.3] * 9}, "worker 2: events came together: the client read 300.0 ms late (p99)"),
        ({"streams": 3}, "worker 2: 2.0 requests were in flight on average instead of 3"),
        ({"stepped": True}, "worker 2: the clock was set during the measurement"),
    ],
)
def test_one_client_that_was_the_limit_is_named(limit: dict[str, Any], why: str) -> None:
    (reason,) = told(BUSY, sent_by("worker 1"), sent_by("worker 2", **limit))

    assert reason.startswith(why)


def test_clocks_that_part_make_rates_uncertain() -> None:
    load = Sent()
    load.told |= {"a": Told(before=Offset(), after=Offset())}
    load.told |= {"b": Told(before=Offset(9.0, 0.001), after=Offset(9.1, 0.001))}

    (doubt,) = load.doubts(8.0)
    assert doubt.reason == "the workers' clocks are known to 101 ms in a window of 8 s"
    assert "aggregate-tok-s" in doubt.figures
    assert "ttft" not in doubt.figures
    assert load.doubts(11.0) == []
