"""The first request of a server's life against later ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.declare.recordings import Recordings
from pytest_vllm.profile.limits import DurationBound, Limits
from pytest_vllm.profile.model import Profile, ServerPart
from pytest_vllm.wire.recording import NotRun, Recording, Request, Undecided
from pytest_vllm.wire.server import Server
from pytest_vllm.wire.store import RecordingStore
from suites.throughput.test_first import FIRST
from suites.throughput.test_first import test_first as check_first

if TYPE_CHECKING:
    from pathlib import Path

LATER = "throughput.later-request"


def judge(
    folder: Path,
    *,
    first: float,
    later: float,
    limit: float | None = None,
    launcher: str = "docker",
    speed: str = "",
) -> None:
    store = RecordingStore(folder)
    headers = (("x-sim-speed", speed),) if speed else ()
    for key, seconds in ((FIRST, first), (LATER, later), (f"{LATER}-again", later)):
        store.save(Recording(key, Request("POST", "/"), status=200, headers=headers, seconds=seconds))
    limits = Limits(first_request=DurationBound(max=limit)) if limit else Limits()
    profile = Profile(name="p", server=ServerPart(launcher="sim"), limits=limits)
    server = Server("http://127.0.0.1:8000", "m", launcher=launcher)
    check_first(profile, server, Recordings(store))


def test_a_first_request_that_takes_a_little_longer(tmp_path: Path) -> None:
    judge(tmp_path, first=55.0, later=0.1)


def test_kernels_that_are_compiled_once_clients_are_there(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"^75 s, later 0.1 s: something is compiled"):
        judge(tmp_path, first=75.0, later=0.1)


@pytest.mark.parametrize(("limit", "first", "holds"), [(120.0, 100.0, True), (2.0, 3.0, False)])
def test_the_profile_says_what_is_allowed(tmp_path: Path, limit: float, first: float, holds: bool) -> None:
    if holds:
        judge(tmp_path, first=first, later=0.1, limit=limit)
        return
    with pytest.raises(AssertionError):
        judge(tmp_path, first=first, later=0.1, limit=limit)


def test_a_busy_host_is_no_slow_simulator(tmp_path: Path) -> None:
    """0.9 s of the wall are 45 s of a clock that runs fifty times as fast."""
    judge(tmp_path, first=0.9, later=0.01, speed="50")


def test_a_server_that_ran_before_has_answered_its_first(tmp_path: Path) -> None:
    with pytest.raises(NotRun, match="not started here"):
        judge(tmp_path, first=99.0, later=0.1, launcher="attach")


def test_a_first_request_without_an_answer_decides_nothing(tmp_path: Path) -> None:
    store = RecordingStore(tmp_path)
    store.save(Recording(FIRST, Request("POST", "/"), error="reset"))
    store.save(Recording(LATER, Request("POST", "/"), status=200, seconds=0.1))
    profile = Profile(name="p", server=ServerPart(launcher="sim"))
    with pytest.raises(Undecided, match="reset"):
        check_first(profile, Server("http://127.0.0.1:8000", "m"), Recordings(store))
