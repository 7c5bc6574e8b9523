"""Defects of what stands between client and server: connections that proxies pool."""

from __future__ import annotations

from pytest_vllm.sim.defects.make import header

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
