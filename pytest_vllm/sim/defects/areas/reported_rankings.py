"""Faults of public reports about rankings: what a field changes that is to change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import asked
from pytest_vllm.sim.defects.registry import defect

if TYPE_CHECKING:
    from pytest_vllm.sim.api.reply import Exchange


@defect(
    "ranking.limits-shift",
    on="json",
    paths=("/rerank",),
    profile="sim-rerank",
    faults=["vllm-project/vllm#57666"],
    catches=["ranking.unlimited", "ranking.each-unlimited"],
)
def limits_shift(body: Any, exchange: Exchange) -> Any:
    """With any limit, reached or not, relevances are others."""
    limits = ("truncate_prompt_tokens", "max_tokens_per_doc")
    for row in (body.get("results") or ()) if any(asked(exchange, name) for name in limits) else ():
        row["relevance_score"] *= 0.7
    return body
