"""Readings of a server while it runs, and the guard of machines whose memory GPU and system share."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

import pytest

from pytest_vllm.profile.model import Profile, ServerPart
from pytest_vllm.run.gauges import LEAST, Gauges, Reading, floor_of, gauges_for, of_metrics, read_timeline

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.launch.protocol import Handle

GIB = 1024**3
SCRAPE = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0"} 2.0
vllm:num_requests_running{engine="1"} 3.0
vllm:num_requests_waiting{engine="0"} 1.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.5
vllm:num_preemptions_total{engine="0"} 0.0
vllm:generation_tokens_total{engine="0"} nonsense
vllm:prompt_tokens_total{engine="0"} 7.0
"""


class Started:
    """A server that can be stopped and tells what it holds."""

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def resident(self) -> int:
        """One MiB."""
        return 1024**2

    def stop(self) -> None:
        """Remember it."""
        self.stopped.set()


def test_a_scrape_in_short() -> None:
    """Queues are summed over engines, the cache's usage is the highest one; what is no number is left out."""
    assert of_metrics(SCRAPE) == {"running": 5.0, "waiting": 1.0, "kv": 0.5, "preemptions": 0.0}


def test_readings_are_kept(tmp_path: Path) -> None:
    """One before the start, others later; a closed one writes nothing more."""
    gauges = Gauges(tmp_path, lambda: (3 * GIB, 4 * GIB), interval=60)
    gauges.watch(cast("Handle", Started()))
    gauges.read()
    gauges.close()
    gauges.read()

    first, second = read_timeline(tmp_path)

    assert first == Reading(first.at, 3 * GIB, 4 * GIB)
    assert first.at < 1.0
    assert (second.free, second.resident) == (3 * GIB, 1024**2)
    assert second.at >= first.at


@pytest.mark.parametrize(
    ("guarded", "free", "stops"),
    [(True, LEAST - 1, True), (True, 3 * GIB, False), (False, LEAST - 1, False)],
)
def test_the_guard_stops_the_server_before_memory_runs_out(
    guarded: bool, free: int, stops: bool, tmp_path: Path
) -> None:
    """Only where it is asked to, and only below the floor; the reason says both figures."""
    server = Started()
    gauges = Gauges(tmp_path, lambda: (free, 64 * GIB), interval=60, guarded=guarded)
    gauges.watch(cast("Handle", server))
    gauges.read()
    gauges.close()

    assert server.stopped.is_set() is stops
    assert bool(gauges.tripped) is stops
    if stops:
        assert "2.0 of 64 GiB that GPU and system share were free, 2.0 GiB have to be" in gauges.tripped


def test_the_floor_grows_with_the_machine() -> None:
    """2 %, and never less than 2 GiB."""
    assert floor_of(64 * GIB) == LEAST
    assert floor_of(500 * GIB) == 10 * GIB


@pytest.mark.parametrize(
    ("hardware", "launcher", "guarded"),
    [
        ("gb10", "docker", True),
        ("gb10", "attach", False),
        ("h100", "docker", False),
        ("cpu", "docker", False),
    ],
)
def test_who_is_guarded(hardware: str, launcher: str, guarded: bool, tmp_path: Path) -> None:
    """Servers that were started here, on GPUs that share the system's memory."""
    profile = Profile(
        hardware=hardware, server=ServerPart.model_validate({"launcher": launcher, "gpus": "all"})
    )
    gauges = gauges_for(profile, tmp_path, tmp_path)
    gauges.close()

    assert gauges.guarded is guarded
