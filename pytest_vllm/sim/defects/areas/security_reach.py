"""Defects of how far a key reaches, and how far a client reaches through the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.sim.api.reply import JSON, Exchange, Reply
from pytest_vllm.sim.defects.registry import defect
from pytest_vllm.sim.defects.scope import CHAT

if TYPE_CHECKING:
    from typing import Any

KEY = "VLLM_API_KEY=sk-pytest-vllm-simulated"
REFUSED = b'{"error":{"message":"Cannot connect to host 127.0.0.1:9 ssl:default","type":"x","code":500}}'


@defect(
    "security.guards-v1-only",
    on="reply",
    environ=[KEY],
    faults=["AUTH-001", "AUTH-002"],
    versions="all: which routes beside /v1 the key guards depends on the version",
    catches=["security.key.guards-api"],
)
def guards_v1_only(reply: Reply, exchange: Exchange) -> Reply:
    """The key guards /v1 alone: other routes that run the model are open."""
    if reply.status == 401 and exchange.path.startswith(("/v2/", "/inference")):
        return Reply(405, b'{"detail":"Method Not Allowed"}', [JSON])
    return reply


@defect(
    "security.fetches-any-address",
    on="reply",
    paths=(CHAT,),
    faults=["AUTH-009"],
    versions="all, unless --allowed-media-domains is set",
    catches=["security.no-inner-fetch"],
)
def fetches_any_address(reply: Reply, exchange: Exchange) -> Reply:
    """A client can make the server ask any address, its own host's included."""
    sent: Any = exchange.body
    return Reply(500, REFUSED, [JSON]) if "127.0.0.1:9" in str(sent) else reply
