"""The gate, and what it says of a server that is killed, frozen or gone, and when it is itself.

    python -m tests.bench.ends                    every way on the simulator, as rows of a table
    python -m tests.bench.ends docker-kill nginx  these; docker-* boot the profile cpu-smollm2

Each way is done to a whole gate at the moment that it names, `record` or `measure`. Rows: what was done, the
answer, how many MUST checks failed, seconds of the whole run, the first reason.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from pytest_vllm.launch.ports import free_port
from tests.real.gate import GateRun, gate_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SIM = (sys.executable, "-m", "pytest_vllm.sim", "serve", "sim")
#: Exchanges that are recorded when something happens in the recording.
SOME = 40
#: Seconds until a moment has to come, and of a run after it.
LONGEST = 900.0
NGINX = """
daemon off; user root; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://{upstream}; proxy_buffering off; }} }}
}}
"""


@dataclass(frozen=True)
class Scene:
    """A gate and its server, at the moment at which something happens.

    Args:
        gate: the gate.
        server: the simulator's process that serves; None for a container.
    """

    gate: psutil.Process
    server: psutil.Process | None

    def send(self, number: signal.Signals) -> None:
        """Signal the server's process; one that the gate started is its child."""
        found = self.server or next(
            child
            for child in self.gate.children(recursive=True)
            if "pytest_vllm.sim" in " ".join(child.cmdline())
        )
        found.send_signal(number)

    def container(self, *command: str) -> None:
        """Do it to the container of this gate."""
        label = f"label=pytest-vllm.owner-pid={self.gate.pid}"
        _docker(*command, _docker("ps", "--quiet", "--filter", label).split()[0])


@dataclass(frozen=True)
class Way:
    """Something that happens.

    Args:
        words: what was done, for the table.
        moment: the phase in which it is done.
        act: does it.
        profile: of a server that the gate starts; empty for one that runs already.
        behind: whether nginx stands in front of it.
    """

    words: str
    moment: str
    act: Callable[[Scene], None]
    profile: str = ""
    behind: bool = False


def _freeze_gate(scene: Scene) -> None:
    scene.gate.send_signal(signal.SIGSTOP)
    time.sleep(20)
    scene.gate.send_signal(signal.SIGCONT)


KILL, STOP, TERM = signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM
WAYS = {
    "kill-started": Way(
        "SIGKILL in the recording, started by the gate", "record", lambda s: s.send(KILL), "sim"
    ),
    "kill": Way("SIGKILL in the recording, attached", "record", lambda s: s.send(KILL)),
    "stop": Way("SIGSTOP in the recording, attached", "record", lambda s: s.send(STOP)),
    "stop-under-load": Way("SIGSTOP in the loads, attached", "measure", lambda s: s.send(STOP)),
    "kill-under-load": Way("SIGKILL in the loads, attached", "measure", lambda s: s.send(KILL)),
    "nginx": Way(
        "SIGKILL in the recording, attached through nginx", "record", lambda s: s.send(KILL), behind=True
    ),
    "nginx-stop": Way(
        "SIGSTOP in the recording, attached through nginx", "record", lambda s: s.send(STOP), behind=True
    ),
    "gate-stop": Way("SIGSTOP to the gate itself for 20 s in the recording", "record", _freeze_gate, "sim"),
    "gate-term": Way(
        "SIGTERM to the gate in the recording", "record", lambda s: s.gate.send_signal(TERM), "sim"
    ),
    "docker-kill": Way(
        "`docker kill` in the recording, real vLLM", "record", lambda s: s.container("kill"), "cpu-smollm2"
    ),
    "docker-pause": Way(
        "`docker pause` in the recording, real vLLM", "record", lambda s: s.container("pause"), "cpu-smollm2"
    ),
    "docker-pause-under-load": Way(
        "`docker pause` in the loads, real vLLM", "measure", lambda s: s.container("pause"), "cpu-smollm2"
    ),
}


def happened(name: str) -> str:
    """The row of a way."""
    way = WAYS[name]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server, option = None, f"--vllm-profile={way.profile}"
        if not way.profile:
            server, address = stack.enter_context(_simulator(folder))
            where = stack.enter_context(_nginx(folder, address)) if way.behind else address
            option = f"--vllm-url=http://{where}"
        out = folder / "out.txt"
        began = time.monotonic()
        with out.open("wb") as said:
            command = gate_command(option)
            gate = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        _wait_for(lambda: _come(way.moment, folder, out.read_text("utf-8", "replace")), gate)
        way.act(Scene(psutil.Process(gate.pid), server))
        gate.wait(LONGEST)
        seconds = time.monotonic() - began
        text = out.read_text("utf-8", "replace")
        return _row(way, GateRun.of_folder(folder / ".vllm", gate.returncode, text), seconds)


def _come(moment: str, folder: Path, text: str) -> bool:
    """Whether some exchanges are recorded, or some requests of a load are answered."""
    if moment == "record":
        return sum(1 for _ in folder.glob(".vllm/runs/*/*/recordings/*.jsonl")) > SOME
    return re.search(r"vllm: measure .* [1-9]\d* done", text) is not None


def _row(way: Way, run: GateRun, seconds: float) -> str:
    if not run.report:
        last = run.text.strip().splitlines()[-1]
        return f"| {way.words} | exit status {run.exit} |  | {seconds:.0f} | {last} |"
    failed = run.reasons("fail")
    said = (line for line in run.text.splitlines() if line.startswith(("did not boot", "UNDECIDED")))
    first = next(iter(failed.values()), next(said, "")).partition("\n")[0]
    first = re.sub(r"127\.0\.0\.1:\d+", "…", first)
    return f"| {way.words} | {run.answer} | {len(failed)} | {seconds:.0f} | `{first[:200]}` |"


def _wait_for(holds: Callable[[], bool], gate: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + LONGEST
    while not holds():
        if gate.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the gate ended, or did not come to that moment")
        time.sleep(0.1)


@contextmanager
def _simulator(folder: Path) -> Iterator[tuple[psutil.Process, str]]:
    port = free_port()
    with (folder / "sim.txt").open("wb") as said:
        command = [*SIM, "--port", str(port)]
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said, start_new_session=True)
    try:
        _wait_for(lambda: _listens(port), process)
        yield psutil.Process(process.pid), f"127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, KILL)
        process.wait()


@contextmanager
def _nginx(folder: Path, upstream: str) -> Iterator[str]:
    port = free_port()
    file = folder / "nginx.conf"
    file.write_text(NGINX.format(folder=folder, port=port, upstream=upstream), "utf-8")
    process = subprocess.Popen(["nginx", "-c", str(file)], stderr=subprocess.DEVNULL)
    try:
        _wait_for(lambda: _listens(port), process)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _docker(*command: str) -> str:
    return subprocess.run(["docker", *command], check=True, capture_output=True, text=True).stdout.strip()


def main(argv: Sequence[str] | None = None) -> int:
    """Print a row for each way."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ends", description=__doc__)
    parser.add_argument("way", nargs="*", choices=[*WAYS, []], default=[])
    ways = parser.parse_args(argv).way or [name for name in WAYS if not name.startswith("docker-")]
    print("| what was done | answer | MUST failed | s | first reason |\n| --- | --- | --- | --- | --- |")
    for name in ways:
        print(happened(name), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
