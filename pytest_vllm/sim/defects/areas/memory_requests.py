"""Defects of requests that need much of the cache."""

from __future__ import annotations

from pytest_vllm.sim.api.reply import JSON, Exchange, Reply
from pytest_vllm.sim.defects.registry import defect
from pytest_vllm.sim.defects.scope import COMPLETIONS

#: As many prompts as no client sends by chance.
MANY = 8


@defect("memory.many-fail", on="reply", paths=(COMPLETIONS,), catches=["memory.answered"])
def many_fail(reply: Reply, exchange: Exchange) -> Reply:
    """Many prompts in one request end in a server error."""
    prompts = exchange.body.get("prompt") if isinstance(exchange.body, dict) else None
    if isinstance(prompts, list) and len(prompts) == MANY and isinstance(prompts[0], list):
        return Reply(500, b'{"error": {"message": "no cache left", "type": "InternalServerError"}}', [JSON])
    return reply
