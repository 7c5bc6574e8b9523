"""Starting the miniature run, reading how far it is, and looking for what it left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import psutil

from pytest_vllm.launch import docker, engine, podman, processes, scratch
from pytest_vllm.launch.owner import Owner
from pytest_vllm.launch.reap import find_orphans, reap
from tests.launched.engines import until

ROOT = Path(__file__).parents[2]
LONGEST = 40
MACHINE = "REAP_TEST_MACHINE"


@dataclass
class Hosted:
    """A miniature run. Usable in `with`, which ends it by force.

    Args:
        launcher: process, docker or podman.
        moment: where it stops and waits.
        folder: its run folder.
        run_id: its name.
        machine: the name it takes this machine to have, so that runs beside this test do not reap its things.
        seen: what it printed.
    """

    launcher: str
    moment: str
    folder: Path
    run_id: str
    machine: str
    seen: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        """Start it."""
        command = [sys.executable, "-m", "tests.reap.host", self.launcher, self.moment, str(self.folder)]
        self._log = (self.folder.parent / f"{self.run_id}.out").open("wb")
        self.process = subprocess.Popen(
            [*command, self.run_id],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), MACHINE: self.machine},
        )
        return self

    def __exit__(self, *exc: object) -> None:
        """End it and its watchdog, whatever happened."""
        for number in (self.process.pid, self.watchdog if self.number_of("watchdog") else 0):
            if number:
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
        self.process.communicate()
        self._log.close()
        # a test that failed leaves nothing either
        reap(orphan for orphan in find_orphans() if orphan.run_id == self.run_id)

    def until(self, text: str) -> None:
        """Read what it prints until this line."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.seen.append(line.strip())
            if line.strip() == text:
                return
        errors = (self.folder.parent / f"{self.run_id}.out").read_text()
        raise AssertionError(f"{text!r} did not come, only {self.seen}\n{errors}")

    def number_of(self, word: str) -> int:
        """`watchdog 4711` -> 4711; 0 when it was not printed."""
        return next((int(line.split()[1]) for line in self.seen if line.startswith(f"{word} ")), 0)

    @property
    def watchdog(self) -> int:
        """The watchdog's process."""
        return self.number_of("watchdog")

    def end(self) -> int:
        """Wait until the run and its watchdog are gone. Returns the run's exit status."""
        rest, _ = self.process.communicate(timeout=LONGEST)
        self.seen += [line.strip() for line in rest.splitlines()]
        until(lambda: not psutil.pid_exists(self.watchdog), "the end of the watchdog", LONGEST)
        return self.process.returncode

    def left(self) -> list[str]:
        """Everything of this run that is still there."""
        found = [f"process {p.pid} {p.cmdline()}" for p, _ in processes.marked(self._is_mine)]
        found += [
            str(path) for pattern in (".owner", "*.lock", "*.tmp") for path in self.folder.glob(pattern)
        ]
        for folder in scratch.all_of_this_user():
            with suppress(OSError):
                found += [str(folder)] if self.run_id in (folder / scratch.OWNER_FILE).read_text() else []
        found += [
            path
            for line in self.seen
            for word, _, path in [line.partition(" ")]
            if word == "folder" and Path(path).exists()
        ]
        return found + (self._containers() if self.launcher != "process" else [])

    def _is_mine(self, environ: object) -> bool:
        return isinstance(environ, dict) and environ.get(processes.RUN) == self.run_id

    def _containers(self) -> list[str]:
        find = podman.url_from if self.launcher == "podman" else docker.url_from
        one = docker.connect(find(os.environ), answer=20)
        names = [f"container {c.name}" for c in one.containers(f"{engine.RUN}={self.run_id}")]
        one.client.close()
        return names


def alive(pid: int) -> bool:
    """Whether a process runs."""
    return Owner.of(pid).alive()
