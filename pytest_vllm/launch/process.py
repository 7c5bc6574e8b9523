"""`vllm serve`, or a Python module, as a process of this machine."""

from __future__ import annotations

import contextlib
import os
import secrets as random
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pytest_vllm.launch import processes, scratch
from pytest_vllm.launch.arguments import Order, bench_of, environment, fixed_port, order_for, program_of
from pytest_vllm.launch.ports import LOOPBACK, check_port, free_port
from pytest_vllm.launch.protocol import BootError, Exit, Halt
from pytest_vllm.launch.started import StartedServer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import psutil

    from pytest_vllm.launch.protocol import LaunchContext
    from pytest_vllm.profile.model import Profile

#: Seconds to end a start; its own processes and shared memory are better taken down by the server itself.
STARTING_GRACE = 5.0


class ProcessLauncher:
    """Starts the profile's server as a process in a session of its own."""

    name = "process"

    def start(self, profile: Profile, context: LaunchContext) -> ProcessHandle:
        """Start the server. Raises BootError when the program or the port is not to be had."""
        program, positional = program_of(profile)
        port = fixed_port(profile)
        if port is None:
            port = free_port()
        else:
            check_port(port)
        order = order_for(profile, context, host=LOOPBACK, port=port, positional=positional)
        return ProcessHandle(program, order, f"http://{LOOPBACK}:{port}", context)


class ProcessHandle(StartedServer):
    """A server process with everything that it started in turn."""

    noun: ClassVar[str] = "process"

    def __init__(self, program: Sequence[str], order: Order, url: str, context: LaunchContext) -> None:
        """Start it."""
        super().__init__(context, order.secrets)
        self.url: str | None = url
        self._start = (program, order, url, context)
        self._shown = order.shown(program)
        self._exit: Exit | None = None
        self._stopped = False
        self._mark = random.token_hex(8)
        context.made("process", "starting")
        self._scratch = scratch.make(context, self._mark)
        env = {
            **environment(context),
            "TMPDIR": str(self._scratch),
            "PYTHONUNBUFFERED": "1",
            **order.env,
            **processes.marks(context, self._mark),
        }
        try:
            self._child = _spawn([*program, *order.arguments], env)
        except BootError:
            scratch.remove(self._scratch)
            raise
        context.made("process", str(self._child.pid))
        self._reader = threading.Thread(target=self._read, name="pytest-vllm server output", daemon=True)
        self._reader.start()

    @property
    def description(self) -> str:
        """What runs, for people."""
        return f"{self.noun} {self._child.pid} started"

    def alive(self) -> bool:
        """Whether the server's main process still runs."""
        return self.exit() is None

    def exit(self) -> Exit | None:
        """How the main process ended, None while it runs."""
        if self._exit is None and (status := _ended(self._child)) is not None:
            name = signal.Signals(-status).name if status < 0 else ""
            self._exit = Exit(status, signal=name)
            # what it printed last may still be on its way; a child of its own can hold the pipe open
            self._reader.join(timeout=1)
            self.lines.close()
        return self._exit

    def facts(self) -> Mapping[str, Any]:
        """The command, secrets replaced, and the process number."""
        return {"command": self._shown, "pid": self._child.pid, "url": self.url}

    def resident(self) -> int | None:
        """Bytes of main memory that it holds."""
        return processes.resident(self._child.pid)

    def inside(self, words: Sequence[str], patience: float, env: Mapping[str, str]) -> tuple[int | None, str]:
        """Run a command beside the server: its exit status, None when it did not end, and what it printed."""
        _, order, _, context = self._start
        whole = {**environment(context), **order.env, **env, **processes.marks(context, self._mark)}
        try:
            done = subprocess.run(  # noqa: S603 - the profile's own program
                list(words),
                env=whole,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                timeout=patience,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None, ""
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def bench(self) -> tuple[tuple[str, ...], str] | None:
        """How `vllm bench serve` is called by the server's own program; None where that cannot be known."""
        program = bench_of(self._start[0])
        return (program, self._start[2]) if program else None

    def stop(self) -> None:
        """Ask it to end, then kill whatever of it is left, also when interrupted meanwhile."""
        if self._stopped:
            return
        try:
            self._ask_to_end()
        finally:
            self._clear()

    def halt(self) -> Halt:
        """Ask it to end, look what is left of it a while later, and kill that."""
        began = time.monotonic()
        left: tuple[str, ...] = ()
        try:
            self._ask_to_end()
            ended, seconds = not self.alive(), time.monotonic() - began
            if ended:
                left = processes.names_of(processes.outliving(self._members, processes.LEAVING))
        finally:
            self._clear()
        return Halt(round(seconds, 3), killed=not ended, left=left)

    def again(self) -> Self:
        """The same command once more, on the same port. Raises BootError."""
        return type(self)(*self._start)

    def _ask_to_end(self) -> None:
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.pid, signal.SIGTERM)
            _wait_ended(self._child, self.grace or STARTING_GRACE)

    def _clear(self) -> None:
        processes.end(self._members)
        self._stopped = True
        self.exit()
        self._child.wait()
        scratch.remove(self._scratch)
        self._reader.join(timeout=1)

    def _members(self) -> Collection[psutil.Process]:
        # the main process is not reaped yet, so its number still names its session and no stranger's
        own = {process.pid: process for process in processes.of_session({self._child.pid})}
        marked = processes.marked(lambda environ: environ.get(processes.SERVER) == self._mark)
        own |= {process.pid: process for process, _ in marked}
        return own.values()

    def _read(self) -> None:
        output = self._child.stdout
        assert output is not None  # noqa: S101 - asked for with PIPE
        with output:
            while data := os.read(output.fileno(), 65_536):
                self.lines.feed(data)
        self.lines.close()


def _spawn(command: list[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - starting the profile's command is the job
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise BootError(
            f"the program {command[0]!r} cannot be started",
            evidence=(str(error),),
            means="it is not installed where pytest runs, or not on PATH",
            try_=(
                "install vLLM in this environment",
                'or name it: [server] command = ["/path/to/venv/bin/vllm", "serve"]',
                "or run the same profile in a container: --vllm-launcher=docker",
            ),
        ) from error


def _ended(child: subprocess.Popen[bytes]) -> int | None:
    """Exit status, negative for a signal, without reaping: the zombie keeps the session's number taken."""
    if child.returncode is not None or not hasattr(os, "waitid"):
        return child.poll()
    result = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if result is None:
        return None
    return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status


def _wait_ended(child: subprocess.Popen[bytes], seconds: float) -> None:
    """Return when it has ended or the time is over; does not reap."""
    done = threading.Event()

    def watch() -> None:
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        done.set()

    if hasattr(os, "waitid"):
        threading.Thread(target=watch, daemon=True).start()
        done.wait(seconds)
    else:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
