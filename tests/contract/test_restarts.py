"""What every launcher of our own servers keeps when one is stopped to be started again."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from pytest_vllm.facts.launchers import LAUNCHERS
from pytest_vllm.launch.attach import AttachHandle
from pytest_vllm.launch.wait import wait_ready
from tests.contract.test_launchers import LOCAL, PATIENCE, started
from tests.launched.engines import until
from tests.launched.stand import Stand, get

if TYPE_CHECKING:
    from pytest_vllm.launch.protocol import Handle, Restartable


def ready(handle: Handle) -> Restartable:
    wait_ready(handle, PATIENCE)
    return cast("Restartable", handle)


@started
def test_a_halted_server_starts_again_on_the_same_terms(stand: Stand) -> None:
    """Its arguments are the same, its log begins anew, and the old handle says that it has ended."""
    with ready(stand.start(max_model_len=4096)) as first:
        words = get(first, "/argv")
        get(first, "/say/first life")
        until(lambda: "first life" in first.logs(), "the line")
        halt = first.halt()

        assert not first.alive()
        assert not halt.killed
        assert halt.left == ()
        assert halt.seconds < 10
        with ready(first.again()) as second:
            assert get(second, "/argv") == words
            until(lambda: any("startup complete" in line for line in second.logs()), "its own log")
            assert "first life" not in second.logs()
            assert first.exit() is not None
        assert not second.alive()


@started
def test_a_server_that_does_not_end_is_killed_and_told_of(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that ignores SIGTERM is gone after its grace, and comes back."""
    monkeypatch.setattr("pytest_vllm.launch.started.GRACE", 1)
    with ready(stand.start("stubborn")) as first:
        halt = first.halt()

        assert halt.killed
        assert not first.alive()
        with ready(first.again()) as second:
            assert second.alive()


@pytest.mark.parametrize("stand", LOCAL, indirect=True)
def test_what_outlives_a_server_is_named_and_ended(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Children that stay when the main process has ended, also those in a session of their own."""
    monkeypatch.setattr("pytest_vllm.launch.processes.LEAVING", 0.2)
    with ready(stand.start("children")) as first:
        halt = first.halt()

        assert not halt.killed
        assert len(halt.left) == 2


def test_an_attached_server_cannot_be_restarted() -> None:
    """It is somebody else's."""
    assert not hasattr(AttachHandle, "halt")
    assert [kind.name for kind in LAUNCHERS.values() if not kind.starts] == ["attach"]
