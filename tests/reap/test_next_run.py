"""What even the watchdog could not remove, the next run does; what is meant to stay, stays."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.launch.reap import Orphan, find_orphans, reap

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reap.hosted import Hosted

    Start = Callable[[str, str], Hosted]

everywhere = pytest.mark.parametrize(
    "launcher", ["process", pytest.param("docker", marks=pytest.mark.docker)]
)


def kill_all_of(run: Hosted) -> None:
    """The run and its watchdog, as a machine that reaps a whole control group does."""
    run.until("moment ready")
    os.kill(run.watchdog, signal.SIGKILL)
    run.process.kill()
    run.end()


def orphans_of(run: Hosted) -> list[Orphan]:
    """What is found of this run; other runs of this machine are not ours to look at."""
    return [orphan for orphan in find_orphans(run.folder.parent) if orphan.run_id == run.run_id]


@everywhere
def test_next_run_removes_it(hosted: Start, launcher: str, request: pytest.FixtureRequest) -> None:
    """Containers, processes, temporary folders, lock files of the dead run, before it starts anything."""
    if launcher == "docker":
        request.getfixturevalue("bystander_containers")
    with hosted(launcher, "ready") as dead:
        kill_all_of(dead)
        (dead.folder / "recording.lock").touch()
        assert dead.left()
        with hosted(launcher, "guarded") as following:
            following.until("moment guarded")

            assert dead.run_id in " ".join(following.seen)
            assert dead.left() == []
            following.process.send_signal(signal.SIGTERM)
            following.end()
            assert following.left() == []


@everywhere
def test_orphans_are_named_and_reaped_by_hand(hosted: Start, launcher: str) -> None:
    """Kind, run, age and owner, as `pytest-vllm reap` lists them."""
    with hosted(launcher, "ready") as dead:
        kill_all_of(dead)
        found = orphans_of(dead)
        kinds = {orphan.kind for orphan in found}

        assert kinds == {
            "lock files",
            *(["docker container"] if launcher == "docker" else ["process", "folder"]),
        }
        assert {orphan.owner_pid for orphan in found} == {dead.process.pid}
        assert all(0 <= orphan.age < 600 for orphan in found)
        assert reap(found) == []
        assert orphans_of(dead) == []
        assert dead.left() == []


def test_what_cannot_be_removed_is_told() -> None:
    """`reap` goes on with the rest and gives back what stayed."""
    removed: list[str] = []

    def refuse() -> None:
        raise OSError("busy")

    stuck = Orphan("process", "stuck", "run", 1.0, 1, remove=refuse)
    easy = Orphan("process", "easy", "run", 1.0, 1, remove=lambda: removed.append("easy"))

    assert reap([stuck, easy]) == [stuck]
    assert removed == ["easy"]
