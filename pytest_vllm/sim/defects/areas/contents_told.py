"""Defects of what answers say of themselves: dates, numbers, kinds, names of models."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.make import ignores, spoil, spoil_events
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import MODELS, RESPONSES, live, only

if TYPE_CHECKING:
    from pytest_vllm.sim.api.reply import Exchange, Reply

HEARD, RERANK = ("/v1/audio/transcriptions",), ("/rerank", "/v1/rerank", "/v2/rerank")
HEARS: dict[str, Any] = {"profile": "sim-transcribe"}

spoil(
    "responses.dated-finely",
    "Responses are dated in milliseconds.",
    (RESPONSES,),
    "created_at",
    lambda seconds: seconds * 1000,
    catches=["responses.created"],
)
spoil(
    "classify.rounded",
    "Probabilities are rounded to one digit.",
    ("/classify",),
    "data.*.probs.*",
    lambda value: round(value, 1),
    catches=["classify.every.precise"],
    profile="sim-classify",
)
spoil(
    "ranking.rounded",
    "Relevances are rounded to two digits.",
    RERANK,
    "results.*.relevance_score",
    lambda value: round(value, 2),
    catches=["ranking.every.precise"],
    profile="sim-rerank",
)


@defect(
    "ranking.question-cut",
    on="body",
    paths=RERANK,
    profile="sim-rerank",
    catches=["ranking.long-query.counted"],
)
def question_cut(body: Any, path: str) -> Any:
    """Of a question 100 characters are read."""
    del path
    asked = body.get("query") if isinstance(body, dict) else None
    return {**body, "query": asked[:100]} if isinstance(asked, str) else body


spoil_events(
    "transcription.nameless",
    "Chunks of a stream name no model.",
    HEARD,
    "model",
    None,
    catches=["transcription.stream.counted"],
    **HEARS,
)
spoil(
    "transcription.bill-of-tokens",
    "A bill in seconds calls itself one of tokens.",
    HEARD,
    "usage.type",
    "tokens",
    catches=["transcription.billed-kind"],
    **HEARS,
)
spoil(
    "transcription.segments-unnumbered",
    "Every segment has the number 0.",
    HEARD,
    "segments.*.id",
    0,
    catches=["transcription.times.numbered"],
    **HEARS,
)


@defect("health.page", on="reply", paths=("/health",), catches=["health.own"])
def page(reply: Reply, exchange: Exchange) -> Reply:
    """A page of the proxy is answered for the health of the server."""
    del exchange
    reply.body = b"<!doctype html><title>Console</title>"
    return reply


ignores(
    "embeddings.uncut",
    "A wish to cut texts is ignored.",
    ["truncate_prompt_tokens"],
    ["/v1/embeddings"],
    profile="sim-embed",
    catches=["embeddings.cut"],
)


def _ghost(body: Any, exchange: Exchange) -> Any:
    del exchange
    if isinstance(body, dict) and body.get("data"):
        body["data"].append({**copy.deepcopy(body["data"][-1]), "id": "ghost"})
    return body


add(
    "models.ghost",
    "A model is listed that no route knows.",
    {"json": only((MODELS,), _ghost), "ready": live},
    catches=["models.list.served"],
)
