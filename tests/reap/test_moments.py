"""A run that is ended at any moment by any means leaves nothing, and takes nothing of others with it."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.reap.host import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reap.hosted import Hosted

    Start = Callable[[str, str], Hosted]

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGKILL")

#: In order: nothing there yet, its temporary folder is about to be made, the server is about to be spawned,
#: it is there but unknown to the handle, known, loading, ready, answering, being stopped, stopped.
OF_A_PROCESS = (
    "guarded",
    "folder",
    "process",
    "spawned",
    "started",
    "loading",
    "ready",
    "recording",
    "stopping",
    "stopped",
)

#: Of a container the moments around its creation are its own; the rest is sampled over the signals.
OF_A_CONTAINER = [
    ("docker", "SIGKILL"),
    ("created", "SIGINT"),
    ("created", "SIGTERM"),
    ("created", "SIGHUP"),
    ("created", "SIGKILL"),
    ("started", "SIGTERM"),
    ("started", "SIGKILL"),
    ("loading", "SIGINT"),
    ("loading", "SIGHUP"),
    ("loading", "SIGKILL"),
    ("ready", "SIGTERM"),
    ("ready", "SIGKILL"),
    ("recording", "SIGHUP"),
    ("recording", "SIGKILL"),
    ("stopping", "SIGINT"),
    ("stopping", "SIGTERM"),
    ("stopping", "SIGKILL"),
]


def hit(run: Hosted, name: str) -> None:
    """Let the run come to its moment, end it by a signal, see that nothing is left."""
    with run:
        run.until(f"moment {run.moment}")
        run.process.send_signal(getattr(signal, name))
        status = run.end()

        assert run.left() == []
        assert status == (-signal.SIGKILL if name == "SIGKILL" else INTERRUPTED)


@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize("moment", OF_A_PROCESS)
def test_process_run_ended_by_signal(hosted: Start, moment: str, name: str) -> None:
    """Server, its children in sessions of their own, temporary files and watchdog are gone."""
    hit(hosted("process", moment), name)


@pytest.mark.docker
@pytest.mark.usefixtures("bystander_containers")
@pytest.mark.parametrize(("moment", "name"), OF_A_CONTAINER)
def test_container_run_ended_by_signal(hosted: Start, moment: str, name: str) -> None:
    """The container is gone, also one that was created and never started."""
    hit(hosted("docker", moment), name)


@pytest.mark.podman
@pytest.mark.parametrize(
    ("moment", "name"), [("created", "SIGKILL"), ("ready", "SIGKILL"), ("ready", "SIGTERM")]
)
def test_podman_run_ended_by_signal(
    hosted: Start, moment: str, name: str, podman_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with Docker; the watchdog knows which engine to ask."""
    monkeypatch.setenv("CONTAINER_HOST", podman_url)

    hit(hosted("podman", moment), name)


@pytest.mark.parametrize("moment", ["guarded", "spawned", "loading", "ready", "recording", "stopped"])
def test_process_run_ended_by_an_exception(hosted: Start, moment: str) -> None:
    """A defect of the gate's own."""
    with hosted("process", f"{moment}-exception") as run:
        status = run.end()

        assert run.left() == []
        assert status == 1
        assert f"moment {moment}" in run.seen


@pytest.mark.docker
@pytest.mark.usefixtures("bystander_containers")
@pytest.mark.parametrize("moment", ["created", "ready"])
def test_container_run_ended_by_an_exception(hosted: Start, moment: str) -> None:
    """A defect of the gate's own."""
    with hosted("docker", f"{moment}-exception") as run:
        status = run.end()

        assert run.left() == []
        assert status == 1


@pytest.mark.parametrize("launcher", ["process", pytest.param("docker", marks=pytest.mark.docker)])
def test_crashed_server(hosted: Start, launcher: str) -> None:
    """What a server leaves that died by itself goes too."""
    with hosted(launcher, "crash") as run:
        status = run.end()

        assert "moment crash" in run.seen
        assert run.left() == []
        assert status == 9


def test_signal_to_the_whole_group_spares_the_watchdog(hosted: Start) -> None:
    """A terminal that closes sends SIGHUP to everything in it; then pytest itself is killed."""
    with hosted("process", "ready") as run:
        run.until("moment ready")
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            os.kill(run.watchdog, number)
        run.process.kill()
        run.end()

        assert run.left() == []


def test_run_survives_the_death_of_its_watchdog(hosted: Start) -> None:
    """The watchdog is a second line; the run itself still takes everything down."""
    with hosted("process", "ready") as run:
        run.until("moment ready")
        os.kill(run.watchdog, signal.SIGKILL)
        run.process.send_signal(signal.SIGTERM)

        assert run.end() == INTERRUPTED
        assert run.left() == []
