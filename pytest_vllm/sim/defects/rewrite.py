"""Applying defects to a recorded answer, without a server."""

from __future__ import annotations

import contextlib
import json
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from pytest_vllm.sim.api.events import read, wire
from pytest_vllm.sim.api.reply import Reply
from pytest_vllm.sim.defects.registry import find, hooks_of
from pytest_vllm.sim.errors import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.sim.api.reply import Exchange
    from pytest_vllm.sim.defects.hooks import Hooks

Chunks = list[tuple[float, bytes]]
Pairs = list[tuple[str, str]]


@dataclass
class Recorded:
    """An answer as it came: chunks are (seconds since the request was sent, bytes)."""

    status: int
    headers: Pairs
    chunks: Chunks


def rewritten(names: Sequence[str], answer: Recorded, exchange: Exchange) -> Recorded:
    """The answer as a server with these defects would have given it.

    Args:
        names: defects, each a pure rewrite. Raises ValueError for one that is not.
        answer: what a healthy server answered.
        exchange: the request: method, path, headers with lower-case names, JSON body.
    """
    for name in names:
        if not find(name).rewrites:
            raise ValueError(f"defect {name} is no rewrite: it needs a running simulator")
    hooks = hooks_of(names)
    if exchange.path.startswith("/metrics"):
        return _metrics(hooks, answer, exchange)
    kind = next((value for name, value in answer.headers if name.lower() == "content-type"), "")
    if kind.startswith("text/event-stream"):
        return _stream(hooks, answer, exchange)
    return _whole(hooks, answer, exchange, json_body=kind.startswith("application/json"))


def rewritten_metrics(names: Sequence[str], text: str) -> str:
    """A scrape as a server with these defects would have given it."""
    spoiled: str = hooks_of([name for name in names if "metrics" in find(name).on]).run("metrics", text, None)
    return spoiled


def _metrics(hooks: Hooks, answer: Recorded, exchange: Exchange) -> Recorded:
    at = answer.chunks[-1][0] if answer.chunks else 0.0
    text = b"".join(chunk for _, chunk in answer.chunks).decode()
    body = hooks.run("metrics", text, None).encode()
    reply: Reply = hooks.run("reply", Reply(answer.status, body, list(answer.headers)), exchange)
    return Recorded(reply.status, reply.headers, [(at, reply.body)])


def _stream(hooks: Hooks, answer: Recorded, exchange: Exchange) -> Recorded:
    ends = list(accumulate(len(chunk) for _, chunk in answer.chunks))
    events = []
    for event, end in read(b"".join(chunk for _, chunk in answer.chunks)):
        place = bisect_left(ends, end)
        event.when = answer.chunks[place][0] if place < len(ends) else 0.0
        events.append(event)
    status, headers = hooks.run("head", (answer.status, list(answer.headers)), exchange)
    chunks: Chunks = []
    last = 0.0
    for event in hooks.run("events", events, exchange):
        last = max(last, event.when)
        sent = hooks.run("chunk", wire(event), exchange)
        if sent:
            chunks.append((last, sent))
    return Recorded(status, headers, chunks)


def _whole(hooks: Hooks, answer: Recorded, exchange: Exchange, *, json_body: bool) -> Recorded:
    raw = b"".join(chunk for _, chunk in answer.chunks)
    if json_body and hooks.has("json"):
        with contextlib.suppress(ValueError):
            raw = encode(hooks.run("json", json.loads(raw), exchange))
    reply: Reply = hooks.run("reply", Reply(answer.status, raw, list(answer.headers)), exchange)
    at = answer.chunks[-1][0] if answer.chunks else 0.0
    headers = [
        (key, str(len(reply.body)) if key.lower() == "content-length" else value)
        for key, value in reply.headers
    ]
    return Recorded(reply.status, headers, [(at, reply.body)])
