"""Clients that run in a Python process of the bench's own: ours, httpx with its lines read, openai.

    python -m tests.bench.inprocess CLIENT PORT STREAMS

Begins all streams together and prints two lines of JSON: the client's processor time and lag, and every
stream with the moments that it saw. `tests.bench.client` runs it, on a core of its own.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import astuple, dataclass, field

import httpx

from pytest_vllm.measure.driver import Call, Driver
from pytest_vllm.measure.samples import sample_of
from pytest_vllm.measure.statistics import percentile

BODY = {"model": "calibrator", "prompt": "x", "stream": True}
CLIENTS = ("ours", "httpx", "openai")
#: Seconds for an answer.
PATIENCE = 90.0


@dataclass
class Stream:
    """What a client says of one stream: its number, when it was sent, when its words came."""

    number: int
    sent: float
    times: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Own:
    """What a client says of itself: processor seconds, and by how many seconds it read late (p99)."""

    cpu: float
    lag: float = 0.0


def ours(port: int, streams: int) -> tuple[Own, list[Stream]]:
    """The measuring driver; what its bytes mean is worked out after the run, as in a measurement."""
    driver = Driver(f"http://127.0.0.1:{port}")
    text = json.dumps(BODY).encode()
    message = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(text), text)
    driver.open(streams)
    over: list[Call] = []
    before = time.process_time()
    calls = [driver.submit(Call(message, over.append, time.perf_counter())) for _ in range(streams)]
    while len(over) < streams:
        driver.step(0.05)
    own = Own(time.process_time() - before, percentile(driver.lags, 0.99) if driver.lags else 0.0)
    found = []
    for call in calls:
        sample = sample_of(call, kind="", asked=None, begin=0.0, speed=1.0, texts=False)
        number = int(call.head.fields["x-stream"]) if call.head else -1
        found.append(Stream(number, call.sent, list(sample.deltas)))
    return own, found


async def with_httpx(port: int, streams: int) -> list[Stream]:
    """httpx, as the usual tools use it."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False, limits=limits) as client:

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
    async with openai.AsyncOpenAI(base_url=url, api_key="x", max_retries=0, timeout=PATIENCE) as client:

        async def one() -> Stream:
            sent = time.perf_counter()
            answer = await client.completions.create(model="calibrator", prompt="x", stream=True)
            stream = Stream(int(answer.response.headers["x-stream"]), sent)
            async for event in answer:
                if event.choices and event.choices[0].text:
                    stream.times.append(time.perf_counter())
            return stream

        return await asyncio.gather(*(one() for _ in range(streams)))


def run(name: str, port: int, streams: int) -> tuple[Own, list[Stream]]:
    """Run one client in this process."""
    if name == "ours":
        return ours(port, streams)
    before = time.process_time()
    found = asyncio.run((with_httpx if name == "httpx" else with_openai)(port, streams))
    return Own(time.process_time() - before), found


def main(name: str, port: str, streams: str) -> int:
    """Be the client that is measured."""
    own, found = run(name, int(port), int(streams))
    print(json.dumps(astuple(own)))
    print(json.dumps([astuple(one) for one in found]))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
