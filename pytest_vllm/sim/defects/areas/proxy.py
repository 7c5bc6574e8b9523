"""Defects of what stands between client and server: connections that proxies pool, buffers, queues."""

from __future__ import annotations

from pytest_vllm.sim.defects.make import header
from pytest_vllm.sim.defects.registry import defect

PROXIED = "llama32-3b-nginx"

header(
    "proxy.connections-closed",
    "The server closes connections that a proxy goes on pooling, so that later requests meet a reset.",
    ("/",),
    "connection",
    "close",
    area="health",
    faults=["PROXY-006", "PROXY-007", "PROXY-008", "PROXY-009"],
    versions="closes idle connections after 5 s by default",
    catches=["health.keep-alive"],
)


@defect(
    "proxy.buffers-streams",
    on="back",
    area="throughput",
    profile=PROXIED,
    catches=["throughput.proxy.streams", "stream.pace.over-time"],
)
def buffers_streams(held: bytes) -> bytes | None:
    """The proxy collects a stream and gives it to the client once it has ended."""
    streamed = b"text/event-stream" in held
    return None if streamed and not held.endswith(b"0\r\n\r\n") else held


@defect(
    "proxy.queues", on="forward", area="throughput", profile=PROXIED, catches=["throughput.proxy.first-token"]
)
def queues(seconds: float, asked: bytes) -> float:
    """The proxy holds every stream of plain text back for most of a second before it asks for it."""
    return seconds + 0.8 if b"/v1/completions" in asked and b'"stream"' in asked else seconds
