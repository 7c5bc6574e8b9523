"""Faults of public reports about rankings: what a field changes that is to change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import asked
from pytest_vllm.sim.defects.registry import defect

if TYPE_CHECKING:
    from pytest_vllm.sim.api.reply import Exchange


@defect(
    "ranking.each-limit-shifts",
    on="json",
    paths=("/rerank",),
    profile="sim-rerank",
    faults=["vllm-project/vllm#57666"],
    catches=["ranking.each-unlimited"],
)
def each_limit_shifts(body: Any, exchange: Exchange) -> Any:
    """With a limit for each document, reached or not, relevances are others."""
    for row in (body.get("results") or ()) if asked(exchange, "max_tokens_per_doc") else ():
        row["relevance_score"] *= 0.7
    return body
