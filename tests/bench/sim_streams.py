"""How well the simulator keeps time: 256 concurrent streams at 100 events a second each, on one core.

Run `python tests/bench/sim_streams.py [STREAMS] [SECONDS]`. The simulator gets a core of its own where there
are two. One engine step gives every stream one event. An event's delay is what it lags behind the first event
of its step, plus what that step lags behind one step's time after the step before. Prints quantiles and the
simulator's CPU share; ends with 1 when the median is above 5 ms.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
RATE = 100
ALLOWED = 0.005
STEP = 1 / RATE


def main(streams: int = 256, seconds: float = 4.0) -> int:
    """Measure and print; the exit status."""
    cores = sorted(os.sched_getaffinity(0))
    port = _free_port()
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "pytest_vllm.sim", "serve", "bench"),
            *("--host", "127.0.0.1", "--port", str(port), "--max-num-seqs", str(streams)),
            *("--sim-step", str(STEP), "--sim-speed", "1", "--max-model-len", "32768"),
        ],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(0, {cores[0]}),  # noqa: PLW1509 - one thread
    )
    if len(cores) > 1:
        os.sched_setaffinity(0, set(cores[1:]))
    try:
        arrivals, cpu, wall = _measure(server.pid, port, streams, seconds)
    finally:
        server.terminate()
        server.wait()
    return _report(arrivals, cpu, wall, streams)


def _measure(pid: int, port: int, streams: int, seconds: float) -> tuple[list[list[float]], float, float]:
    _wait(port)
    body = {
        "model": "bench",
        "messages": [{"role": "user", "content": "Tell me a long story."}],
        "max_tokens": int((seconds + 6) * RATE),
        "ignore_eos": True,
        "stream": True,
        "temperature": 0,
    }
    text = json.dumps(body).encode()
    request = (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n%b" % (len(text), text)
    )
    selector = selectors.DefaultSelector()
    arrivals: list[list[float]] = [[] for _ in range(streams)]
    for number in range(streams):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.sendall(request)
        sock.setblocking(False)
        selector.register(sock, selectors.EVENT_READ, number)
    _read(selector, arrivals, until=lambda: all(len(times) > 20 for times in arrivals), limit=30)
    for times in arrivals:
        times.clear()
    before, began = _cpu(pid), time.perf_counter()
    _read(selector, arrivals, until=lambda: time.perf_counter() - began > seconds, limit=seconds + 1)
    wall = time.perf_counter() - began
    cpu = _cpu(pid) - before
    for key in list(selector.get_map().values()):
        key.fileobj.close()  # type: ignore[union-attr]
    return arrivals, cpu, wall


def _read(
    selector: selectors.BaseSelector, arrivals: list[list[float]], *, until: Callable[[], bool], limit: float
) -> None:
    end = time.perf_counter() + limit
    while not until() and time.perf_counter() < end:
        for key, _ in selector.select(0.05):
            data = key.fileobj.recv(65536)  # type: ignore[union-attr]
            now = time.perf_counter()
            arrivals[key.data] += [now] * data.count(b'"delta":{"content"')


def _report(arrivals: list[list[float]], cpu: float, wall: float, streams: int) -> int:
    delays = sorted(_delays(arrivals))
    count = len(delays)
    shown = {name: delays[min(count - 1, int(count * part))] * 1000 for name, part in _QUANTILES.items()}
    events = sum(map(len, arrivals))
    print(f"{streams} streams, {events} events in {wall:.1f} s: {events / wall:.0f} events/s")
    print("delay in ms: " + ", ".join(f"{name} {value:.1f}" for name, value in shown.items()))
    print(f"simulator: {100 * cpu / wall:.0f} % of one core, {1e6 * cpu / events:.1f} microseconds per event")
    return int(shown["median"] > ALLOWED * 1000)


def _delays(arrivals: list[list[float]]) -> Iterator[float]:
    """Seconds by which each event was late. Streams are aligned to the step of stream 0's second event."""
    reference = arrivals[0][1]
    aligned = [
        times[min((abs(at - reference), k) for k, at in enumerate(times[:4]))[1] :] for times in arrivals
    ]
    previous = None
    for step in zip(*aligned, strict=False):
        first = min(step)
        late = max(0.0, first - previous - STEP) if previous is not None else 0.0
        previous = first
        yield from (at - first + late for at in step)


_QUANTILES = {"median": 0.5, "p90": 0.9, "p99": 0.99, "most": 1.0}


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wait(port: int) -> None:
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise SystemExit("the simulator did not start")


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main(*[int(word) for word in sys.argv[1:]]))
