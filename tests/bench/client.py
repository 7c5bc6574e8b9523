"""Capacity and truth of clients against a server that computes nothing, in one table each.

    python -m tests.bench.client [--quick]

The server (`pytest_vllm.measure.calibrator`) and each client have a core and a process of their own.
Capacity: streams paced at one event per read, processor time of the client per event, and what of the
offered events it took. Truth: all streams begin together, the first event comes after 50 ms, the others 10 ms
apart; the server writes down when each went out, so that the errors are the client's alone. Clients: ours,
httpx with its lines read and decoded, openai. aiperf and guidellm are not run: they are programs of 0.9 and
5.7 GB that need environments of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import httpx

from pytest_vllm.measure.driver import Call, Driver
from pytest_vllm.measure.samples import Events
from pytest_vllm.measure.statistics import percentile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BODY = {"model": "calibrator", "prompt": "x", "stream": True}
#: (streams, seconds between events, events)
CAPACITY = ((64, 0.01, 200), (256, 0.0125, 160), (1000, 0.01, 60))
TRUTH = ((64, 0.01, 100), (256, 0.01, 100), (1000, 0.01, 60))
FIRST, GAP = 0.05, 0.01
CLIENTS = ("ours", "httpx", "openai")
#: A client is given up after this long.
LONGEST = 90.0


@dataclass
class Stream:
    """What a client says of one stream: its number, when it was sent, when its events came."""

    number: int
    sent: float
    times: list[float] = field(default_factory=list)


def ours(port: int, streams: int) -> list[Stream]:
    """The measuring driver."""
    driver = Driver(f"http://127.0.0.1:{port}")
    text = json.dumps(BODY).encode()
    message = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(text), text)
    driver.open(streams)
    over: list[Call] = []
    before = time.process_time()
    calls = [driver.submit(Call(message, over.append, time.perf_counter())) for _ in range(streams)]
    while len(over) < streams:
        driver.step(0.05)
    spent = time.process_time() - before
    found = []
    for call in calls:
        times = list(Events.of(call).times)
        number = int(call.head.fields["x-stream"]) if call.head else -1
        found.append(Stream(number, call.sent, times[1:-3]))
    print(json.dumps({"cpu": spent, "lag": percentile(driver.lags, 0.99) if driver.lags else 0.0}))
    return found


async def with_httpx(port: int, streams: int) -> list[Stream]:
    """httpx, as the usual tools use it."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(timeout=LONGEST, trust_env=False, limits=limits) as client:

        async def one() -> Stream:
            sent = time.perf_counter()
            async with client.stream("POST", f"http://127.0.0.1:{port}/v1/completions", json=BODY) as answer:
                stream = Stream(int(answer.headers["x-stream"]), sent)
                async for line in answer.aiter_lines():
                    choices = json.loads(line[6:])["choices"] if line.startswith("data: {") else []
                    if choices and choices[0]["text"]:
                        stream.times.append(time.perf_counter())
            return stream

        return await asyncio.gather(*(one() for _ in range(streams)))


async def with_openai(port: int, streams: int) -> list[Stream]:
    """The openai client."""
    import openai

    url = f"http://127.0.0.1:{port}/v1"
    async with openai.AsyncOpenAI(base_url=url, api_key="x", max_retries=0, timeout=LONGEST) as client:

        async def one() -> Stream:
            sent = time.perf_counter()
            answer = await client.completions.create(model="calibrator", prompt="x", stream=True)
            stream = Stream(int(answer.response.headers["x-stream"]), sent)
            async for event in answer:
                if event.choices and event.choices[0].text:
                    stream.times.append(time.perf_counter())
            return stream

        return await asyncio.gather(*(one() for _ in range(streams)))


def run_client(name: str, port: int, streams: int) -> list[Stream]:
    """Run one client in this process; its processor time goes out as a line of JSON."""
    if name == "ours":
        return ours(port, streams)
    before = time.process_time()
    found = asyncio.run((with_httpx if name == "httpx" else with_openai)(port, streams))
    print(json.dumps({"cpu": time.process_time() - before, "lag": 0.0}))
    return found


@contextlib.contextmanager
def calibrator(gap: float, events: int) -> Iterator[int]:
    """The server, on the first core; its port."""
    command = [sys.executable, "-m", "pytest_vllm.measure.calibrator"]
    command += ["--first", str(FIRST), "--gap", str(gap), "--events", str(events)]
    with subprocess.Popen([*_pinned(0), *command], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


def measure(client: str, streams: int, gap: float, events: int) -> dict[str, Any] | None:
    """One client against a fresh server: its figures, None when it did not end in time."""
    with calibrator(gap, events) as port:
        command = [sys.executable, "-m", "tests.bench.client", "--client", client]
        command += ["--port", str(port), "--streams", str(streams)]
        began = time.perf_counter()
        try:
            done = subprocess.run(
                [*_pinned(1), *command], capture_output=True, text=True, timeout=LONGEST, check=True
            )
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
            return None
        wall = time.perf_counter() - began
        truth = httpx.get(f"http://127.0.0.1:{port}/truth", timeout=30, trust_env=False).json()
    told, rows = (json.loads(line) for line in done.stdout.splitlines())
    found = [Stream(*row) for row in rows if row[2]]
    real = dict(enumerate(truth))
    taken = sum(len(one.times) for one in found)
    span = max(one.times[-1] for one in found) - min(one.times[0] for one in found)
    first = [one.times[0] - one.sent for one in found]
    true = [real[one.number]["written"][0] - real[one.number]["arrived"] for one in found]
    gaps = [b - a for one in found for a, b in pairwise(one.times)]
    errors = [abs(mine - its) for mine, its in zip(first, true, strict=True)]
    return {
        "us": told["cpu"] / max(taken, 1) * 1e6,
        "rate": taken / span if span else 0.0,
        "ttft": first,
        "true": true,
        "errors": errors,
        "itl": gaps,
        "true_itl": [b - a for row in truth for a, b in pairwise(row["written"])],
        "lag": told["lag"],
        "wall": wall,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Print both tables; or be the client that is measured."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.client", description=__doc__)
    parser.add_argument("--client", choices=CLIENTS)
    parser.add_argument("--port", type=int)
    parser.add_argument("--streams", type=int)
    parser.add_argument("--quick", action="store_true", help="64 streams only")
    options = parser.parse_args(argv)
    if options.client:
        found = run_client(options.client, options.port, options.streams)
        print(json.dumps([[one.number, one.sent, one.times] for one in found]))
        return 0
    take = 1 if options.quick else 3
    print(
        "capacity: client's processor time per event, events/s that a whole core would take, events/s taken"
    )
    for streams, gap, events in CAPACITY[:take]:
        print(f"  {streams} streams x {1 / gap:.0f}/s, {streams / gap:.0f} events/s offered")
        for client in CLIENTS:
            one = measure(client, streams, gap, events)
            print(f"    {client:8}" + ("  gave up" if one is None else _capacity(one)))
    print("truth: p50/p99 in ms that the client reports, and its error against what the server wrote down")
    for streams, gap, events in TRUTH[:take]:
        print(f"  {streams} streams at once, first event after 50 ms, then 10 ms")
        for client in CLIENTS:
            one = measure(client, streams, gap, events)
            print(f"    {client:8}" + ("  gave up" if one is None else _truth(one)))
    return 0


def _capacity(one: dict[str, Any]) -> str:
    return f"{one['us']:8.1f} us {1e6 / one['us']:9.0f}/s of a core {one['rate']:9.0f}/s taken"


def _truth(one: dict[str, Any]) -> str:
    def pair(values: Sequence[float]) -> str:
        return f"{median(values) * 1e3:.2f}/{percentile(values, 0.99) * 1e3:.2f}"

    lag = f"  lag p99 {one['lag'] * 1e3:.1f}" if one["lag"] else ""
    lag += ": ITL undecided, the client was late" if one["lag"] > GAP else ""
    return (
        f"  TTFT {pair(one['ttft'])} (true {pair(one['true'])}, error {pair(one['errors'])})"
        f"  ITL {pair(one['itl'])} (true {pair(one['true_itl'])}){lag}"
    )


def _pinned(core: int) -> list[str]:
    cores = sorted(os.sched_getaffinity(0))
    return ["taskset", "-c", str(cores[core % len(cores)])]


if __name__ == "__main__":
    sys.exit(main())
