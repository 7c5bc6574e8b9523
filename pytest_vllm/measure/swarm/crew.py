"""The processes that send a load: Locust's master, and workers here and elsewhere.

They are started once for all loads of a server and end with them, however pytest ends: each ends by itself
when the pipe that comes from this process breaks. The master passes on what is told to the workers and what
they tell, one JSON object a line.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from importlib.metadata import version
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Seconds for the master to listen, for workers to join, and for all of them to end when told so, also where
#: one of them is lost.
LISTEN, JOIN, END, BROKEN_END = 20.0, 60.0, 5.0, 1.5
MISSING = "loads of several processes need Locust, which is not installed: pip install 'pytest-vllm[locust]'"
LOOPBACK = "127.0.0.1:0"
#: The environment variable with which Locust leaves the standard library as it is.
UNPATCHED = "LOCUST_SKIP_MONKEY_PATCH"
_PROCESS = (sys.executable, "-P", "-m")


class Spoiled(Exception):  # noqa: N818 - a state of a load
    """Why nothing of a load can be judged: what should have sent it did not."""


def available() -> bool:
    """Whether Locust is installed; it is not imported."""
    return find_spec("locust") is not None


class Crew:
    """Master and workers.

    Args:
        here: worker processes that are started on this machine.
        elsewhere: workers that are waited for, which somebody starts on other machines.
        address: host and port where the master listens for them; port 0: any.
        say: takes what is waited for.
    """

    def __init__(
        self,
        here: int,
        elsewhere: int = 0,
        address: str = LOOPBACK,
        say: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """Nothing is started yet."""
        self.here, self.elsewhere, self.address, self._say = here, elsewhere, address, say
        #: Why no load can be sent any more; empty while one can.
        self.broken = ""
        #: Name of each worker by its Locust id, in the order in which loads are shared out.
        self.names: dict[str, str] = {}
        self._loads = 0
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._stderr: dict[str, IO[bytes]] = {}
        self._news: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._reader: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start all of them; a failure is told in `broken`."""
        try:
            self._start_all()
        except Spoiled as reason:
            self.broken = str(reason)
        except BaseException:
            self._end(0.0)
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        """End all of them."""
        if "master" in self._processes:
            with contextlib.suppress(Spoiled):
                self.order("quit")
        self._end(BROKEN_END if self.broken else END)

    def next_load(self) -> int:
        """A number for the next load, which its messages carry."""
        self._loads += 1
        return self._loads

    def order(self, do: str, **more: Any) -> None:
        """Tell the master to do something. Raises Spoiled when it is gone."""
        pipe = self._processes["master"].stdin
        try:
            if pipe is not None:
                pipe.write(json.dumps({"do": do, **more}).encode() + b"\n")
                pipe.flush()
        except OSError as error:
            raise self.lost("the master", str(error)) from error

    def tell(self, what: str, to: str = "", **more: Any) -> None:
        """Tell a worker something, or all of them. Raises Spoiled when the master is gone."""
        self.order("tell", to=to, message={"what": what, **more})

    def news(self, longest: float = 0.0) -> Iterator[dict[str, Any]]:
        """What has been told since; waits for the first of it. Raises Spoiled when a process is gone."""
        deadline = time.perf_counter() + longest
        while True:
            left = deadline - time.perf_counter()
            try:
                one = self._news.get(timeout=min(left, 0.1)) if left > 0 else self._news.get_nowait()
            except queue.Empty:
                self._all_there()
                if left <= 0:
                    return
                continue
            deadline = 0.0
            if one["is"] == "left":
                raise self.lost(self.names.get(one["worker"], "a worker"), "it has left")
            yield one

    def lost(self, who: str, why: str) -> Spoiled:
        """The reason to give up: a process is lost, and with it a part of the load and its records."""
        self.broken = self.broken or (
            f"{who} of this load was lost ({why}), and with it a part of the load and of its records; "
            "nothing was measured from then on"
        )
        return Spoiled(self.broken)

    def _start_all(self) -> None:
        if not available():
            raise Spoiled(MISSING)
        host, _, port = self.address.rpartition(":")
        words = ("pytest_vllm.measure.swarm.master", host, port, str(self.here + self.elsewhere))
        master = self._start("master", *words, stdout=subprocess.PIPE)
        if master.stdout is not None:
            self._reader = threading.Thread(target=self._read, args=(master.stdout,), daemon=True)
            self._reader.start()
        port = str(self._await("listening", LISTEN, "the master of Locust does not listen")["port"])
        reached = f"{host if host != '0.0.0.0' else '127.0.0.1'}:{port}"  # noqa: S104 - to reach it
        for number in range(1, self.here + 1):
            name = f"worker {number}"
            self._start(name, "pytest_vllm.measure.swarm.worker", reached, f"--name={name}")
        self._join(f"{host}:{port}")

    def _join(self, address: str) -> None:
        """Wait until all workers are there, and name them."""
        wanted = self.here + self.elsewhere
        found: dict[str, str] = {}
        deadline = time.perf_counter() + JOIN
        while len(found) < wanted:
            missing = f"{wanted - len(found)} of {wanted} workers have not joined {address}"
            if self.elsewhere:
                missing += f"; on another machine one is started by: pytest-vllm load-worker {address}"
            self._say(missing)
            if time.perf_counter() > deadline:
                raise Spoiled(f"{missing}; waited {JOIN:g} s")
            for one in self.news(1.0):
                if one["is"] == "worker" and one["what"] == "hello":
                    number = self.here + 1 + sum(" on " in name for name in found.values())
                    found[one["worker"]] = one["name"] or f"worker {number} on {one['host']}"
                    _same_version(found[one["worker"]], one["version"])
        self.names = dict(sorted(found.items(), key=lambda item: int(item[1].split()[1])))

    def _await(self, kind: str, patience: float, what: str) -> dict[str, Any]:
        deadline = time.perf_counter() + patience
        while time.perf_counter() < deadline:
            for one in self.news(0.5):
                if one["is"] == kind:
                    return one
        raise Spoiled(f"{what} within {patience:g} s")

    def _start(self, name: str, module: str, *words: str, stdout: int = subprocess.DEVNULL) -> Any:
        self._stderr[name] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `_end`
        # not in our process group: Ctrl-C is for pytest, which ends them
        self._processes[name] = subprocess.Popen(  # noqa: S603 - our own words
            [*_PROCESS, module, *words],
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=self._stderr[name],
            env={**os.environ, UNPATCHED: "1"},
            start_new_session=True,
        )
        return self._processes[name]

    def _read(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            if line.endswith(b"\n"):  # else it was killed while it wrote
                self._news.put(json.loads(line))

    def _all_there(self) -> None:
        for name, process in self._processes.items():
            if (status := process.poll()) is not None:
                told = self._told(name)
                how = f"it ended with status {status}" if status >= 0 else f"killed by signal {-status}"
                raise self.lost(f"the {name}" if name == "master" else name, how + (told and f": {told}"))

    def _told(self, name: str) -> str:
        """How what a process wrote to stderr ends."""
        file = self._stderr[name]
        file.seek(0)
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else ""

    def _end(self, patience: float) -> None:
        """Wait a little for all of them to end, and kill what has not."""
        deadline = time.perf_counter() + patience
        for process in self._processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.perf_counter()))
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
        if self._reader is not None:
            self._reader.join()
        for process in self._processes.values():
            if process.stdout is not None:
                process.stdout.close()
        for file in self._stderr.values():
            file.close()


def _same_version(who: str, theirs: str) -> None:
    if theirs != (ours := version("pytest-vllm")):
        raise Spoiled(f"{who} has pytest-vllm {theirs}, and this is {ours}: install the same on both")
