"""A run in miniature: guard, launcher, waiting, a request, the end. It stops at a moment and waits to be hit.

`python -m tests.reap.host LAUNCHER MOMENT FOLDER RUN_ID`, in MOMENT the word `-exception` for one of its own.
Every moment that is passed is printed, and so are the numbers of the processes that belong to the run.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, NoReturn

import httpx

from pytest_vllm.launch import owner
from pytest_vllm.launch.guard import guarded
from pytest_vllm.launch.protocol import LaunchContext
from pytest_vllm.launch.registry import launcher_for
from pytest_vllm.launch.wait import Progress, wait_ready
from pytest_vllm.profile.model import BootPart, Profile, ServerPart
from tests.launched import fake_server
from tests.launched.engines import IMAGE, until
from tests.reap.hosted import MACHINE

if TYPE_CHECKING:
    from pytest_vllm.launch.protocol import Handle

SCRIPT = Path(fake_server.__file__)
INTERRUPTED = 2


class Moments:
    """Stops the run at one moment, until a signal comes or for good."""

    def __init__(self, wanted: str) -> None:
        """Wait for this moment."""
        self.wanted, _, self.ending = wanted.partition("-")

    def reach(self, moment: str, *, stay: bool = True) -> None:
        """Pass a moment, or stay in it."""
        print(f"moment {moment}", flush=True)
        if moment != self.wanted:
            return
        if self.ending == "exception":
            raise RuntimeError(moment)
        if stay:
            Event().wait()

    def made(self, kind: str, id: str) -> None:  # noqa: A002
        """Things coming into being are moments too."""
        if kind == "process" and id.isdigit():
            print(f"server {id}", flush=True)
        if kind == "folder":
            print(f"folder {id}", flush=True)
        self.reach("spawned" if id.isdigit() else kind)

    def progress(self, progress: Progress) -> None:
        """So is loading."""
        if progress.phase == "loading weights":
            self.reach("loading")


def profile_for(launcher: str, moment: str) -> Profile:
    """A server that loads for a while, or does not want to end, or has children, as the moment needs it."""
    model = "fake/" + {"loading": "children/600", "stopping": "stubborn"}.get(moment, "children")
    server = ServerPart(model=model, command=[sys.executable, str(SCRIPT), "serve"])
    if launcher != "process":
        inside = "/fake_server.py"
        command, volumes = ["python3", inside, "serve"], [f"{SCRIPT}:{inside}:ro"]
        server = ServerPart(model=model, image=IMAGE, command=command, volumes=volumes)
    return Profile(name="reap", server=server)


def record(handle: Handle, moments: Moments) -> None:
    """A request in flight, and one that kills the server."""
    with httpx.Client(trust_env=False) as client:
        if moments.wanted == "crash":
            try:
                client.get(f"{handle.url}/die/9")
            except httpx.HTTPError as error:
                moments.reach("crash", stay=False)
                raise SystemExit(9) from error
        client.get(f"{handle.url}/say/recording")
    moments.reach("recording")


def tell_when_stopping(handle: Handle, moments: Moments) -> None:
    """The signal is to come while the server is given its time to end."""
    until(lambda: "SIGTERM is ignored" in handle.logs(), "the server's word on SIGTERM")
    moments.reach("stopping", stay=False)


def main(launcher: str, wanted: str, folder: Path, run_id: str) -> None:
    """Run."""
    moments = Moments(wanted)
    context = LaunchContext(run_id, folder, os.getpid(), made=moments.made)
    with guarded(context, folder.parent) as guard:
        print(f"reaped {sorted({orphan.run_id for orphan in guard.reaped})}", flush=True)
        print(f"watchdog {guard.watchdog_pid}", flush=True)
        moments.reach("guarded")
        with guard.start(launcher_for(launcher), profile_for(launcher, moments.wanted)) as handle:
            moments.reach("started")
            wait_ready(handle, BootPart(timeout=60, stalled=60), moments.progress)
            moments.reach("ready")
            record(handle, moments)
            if moments.wanted == "stopping":
                tell = Thread(target=tell_when_stopping, args=(handle, moments), daemon=True)
                tell.start()
        moments.reach("stopped")


def run() -> NoReturn:
    """Exit status 2 for whatever interrupts, as pytest's."""
    owner._host = lambda: os.environ[MACHINE]
    # A shell that starts the tests in the background has them ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4])
    except KeyboardInterrupt as end:
        print(f"interrupted {end}", flush=True)
        sys.exit(INTERRUPTED)
    sys.exit(0)


if __name__ == "__main__":
    run()
