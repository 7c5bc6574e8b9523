"""Defects of embedding servers: vectors, order, counts, rankings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.reply import JSON, Reply
from pytest_vllm.sim.defects.make import spoil
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import only

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.reply import Exchange

EMBED = ("/v1/embeddings",)
SCORE = ("/score",)
RERANK = ("/rerank",)
ON = "sim-embed"
Vector = list[float]


def _rows(body: Any) -> list[dict[str, Any]]:
    rows = body.get("data") if isinstance(body, dict) else None
    return [row for row in rows if isinstance(row.get("embedding"), list)] if isinstance(rows, list) else []


def _vectors(name: str, summary: str, change: Callable[[Vector, int, int], Any], **facts: Any) -> None:
    """Every vector, changed; told are its number and how many there are."""

    def changed(body: Any, exchange: Exchange) -> Any:
        del exchange
        rows = _rows(body)
        for number, row in enumerate(rows):
            row["embedding"] = change(row["embedding"], number, len(rows))
        return body

    add(name, summary, {"json": only(EMBED, changed)}, profile=ON, **facts)


def _turned(vector: Vector, number: int, count: int) -> Vector:
    shift = 7 * number if count > 1 else 0
    return [*vector[shift:], *vector[:shift]]


def _pooled(vector: Vector, number: int, count: int) -> Vector:
    del number, count
    return [1 / len(vector) ** 0.5] * len(vector)


def _drifts(vector: Vector, number: int, count: int) -> Vector:
    if count == 1:
        return vector
    return [-value if place % 9 == number % 9 else value for place, value in enumerate(vector)]


_vectors(
    "embeddings.pooled-wrongly",
    "All texts get nearly the same vector: the model's output is pooled otherwise than it was trained for.",
    _pooled,
    faults=["EMBED-001", "EMBED-003"],
    versions="0.23.0",
    catches=["embeddings.distinct", "embeddings.meaning", "embeddings.spread"],
)
_vectors(
    "embeddings.batch-shifts",
    "In a batch, each vector but the first is another than that of the text alone.",
    _turned,
    catches=["embeddings.same-in-batch", "embeddings.same-in-any-order", "embeddings.twice-the-same"],
)
_vectors(
    "embeddings.signs-differ",
    "In a batch, some numbers have the other sign, as lengths differ.",
    _drifts,
    faults=["EMBED-004"],
    versions="0.15.1",
    catches=["embeddings.same-in-batch"],
)
_vectors(
    "embeddings.not-normalised",
    "Vectors are not of length 1.",
    lambda vector, *_: [value * 3 for value in vector],
    faults=["EMBED-009"],
    catches=["embeddings.unit"],
)
_vectors(
    "embeddings.null",
    "Some vectors are null.",
    lambda vector, number, _: [0.0] * len(vector) if number else vector,
    faults=["EMBED-009"],
    catches=["embeddings.finite"],
)
_vectors(
    "embeddings.sizes-differ",
    "The vectors of a batch are shorter than that of a text alone.",
    lambda vector, _, count: vector[: len(vector) // 2] if count > 1 else vector,
    catches=["embeddings.size"],
)
spoil(
    "embeddings.numbers-equal",
    "All vectors of a batch have the number 0.",
    EMBED,
    "data.*.index",
    0,
    profile=ON,
    catches=["embeddings.order"],
)
spoil(
    "embeddings.object-missing",
    "The rows of an answer do not name their object.",
    EMBED,
    "data.*.object",
    profile=ON,
    catches=["embeddings.object"],
)
spoil(
    "embeddings.model-other",
    "An answer names another model.",
    EMBED,
    "model",
    "text-embedding-3",
    profile=ON,
    catches=["embeddings.model"],
)
spoil(
    "embeddings.one-for-all",
    "A batch gets one vector.",
    EMBED,
    "data",
    lambda rows: rows[:1],
    profile=ON,
    faults=["EMBED-005"],
    catches=["embeddings.count"],
)
spoil(
    "embeddings.uncounted",
    "No tokens are counted.",
    EMBED,
    "usage.prompt_tokens",
    0,
    profile=ON,
    catches=["embeddings.usage", "embeddings.usage.like-tokenize"],
)


@defect("embeddings.ids-misread", on="json", paths=EMBED, profile=ON, catches=["embeddings.ids-like-text"])
def ids_misread(body: Any, exchange: Exchange) -> Any:
    """Token ids are embedded as if they were another text."""
    given = exchange.body.get("input") if isinstance(exchange.body, dict) else None
    if isinstance(given, list) and given and isinstance(given[0], int):
        for row in _rows(body):
            row["embedding"] = row["embedding"][::-1]
    return body


@defect("embeddings.base64-ignored", on="json", paths=EMBED, profile=ON, catches=["embeddings.base64"])
def base64_ignored(body: Any, exchange: Exchange) -> Any:
    """Vectors come as numbers although base64 was asked for."""
    if isinstance(exchange.body, dict) and exchange.body.get("encoding_format") == "base64":
        for row in body.get("data", ()):
            row["embedding"] = [1.0, 0.0]
    return body


def _replies(
    name: str, summary: str, paths: tuple[str, ...], change: Callable[[Reply, Exchange], Reply], **facts: Any
) -> None:
    add(name, summary, {"reply": only(paths, change)}, area="embeddings", profile=ON, **facts)


def _sent(exchange: Exchange) -> Any:
    return exchange.body.get("input") if isinstance(exchange.body, dict) else None


def _unequal(reply: Reply, exchange: Exchange) -> Reply:
    given = _sent(exchange)
    if isinstance(given, list) and len(given) > 1 and reply.status == 200:
        error = {
            "error": {
                "message": "EngineCore encountered an issue.",
                "type": "InternalServerError",
                "code": 500,
            }
        }
        return Reply(500, json.dumps(error).encode(), [JSON])
    return reply


def _not_a_number(reply: Reply, exchange: Exchange) -> Reply:
    del exchange
    if reply.status == 200:
        reply.body = reply.body.replace(b'"embedding":[', b'"embedding":[NaN,', 1)
    return reply


def _refusals(status: int) -> Callable[[Reply, Exchange], Reply]:
    def change(reply: Reply, exchange: Exchange) -> Reply:
        del exchange
        return Reply(status, reply.body, reply.headers) if 400 <= reply.status < 500 else reply

    return change


def _broken(reply: Reply, exchange: Exchange) -> Reply:
    return Reply(500, reply.body, reply.headers) if _sent(exchange) == [] else reply


_replies(
    "embeddings.batch-kills",
    "Several texts in one request end in a server error.",
    EMBED,
    _unequal,
    faults=["EMBED-005"],
    versions="0.6.4",
    catches=["embeddings.answered"],
)
_replies(
    "embeddings.not-a-number",
    "A vector holds NaN, which is no JSON.",
    EMBED,
    _not_a_number,
    faults=["EMBED-009"],
    catches=["embeddings.json"],
)
_replies(
    "embeddings.refusals-fail",
    "What should be refused breaks the server.",
    EMBED,
    _refusals(500),
    catches=["embeddings.refused", "embeddings.too-long", "embeddings.survived", "embeddings.narrow"],
)
_replies(
    "embeddings.empty-breaks",
    "An empty list breaks the server.",
    EMBED,
    _broken,
    catches=["embeddings.survived"],
)


def _generating(reply: Reply, exchange: Exchange) -> Reply:
    plain = {"model", "messages", "prompt", "max_tokens", "temperature"}
    if isinstance(exchange.body, dict) and set(exchange.body) <= plain and 400 <= reply.status < 500:
        return Reply(500, reply.body, reply.headers)
    return reply


_replies(
    "embeddings.chat-breaks",
    "A chat with a model that only embeds breaks the server.",
    ("/v1/chat", "/v1/completions"),
    _generating,
    catches=["embeddings.no-chat"],
)


@defect(
    "embeddings.ranks-unrelated-first",
    on="json",
    paths=RERANK,
    area="embeddings",
    profile=ON,
    faults=["EMBED-003", "EMBED-008"],
    catches=["embeddings.rerank.best", "embeddings.score.like-rerank", "ranking.alone"],
)
def unrelated_first(body: Any, exchange: Exchange) -> Any:
    """A document that has nothing to do with the question is the most relevant."""
    del exchange
    rows = body.get("results") or []
    values = [row["relevance_score"] for row in rows]
    for row, other in zip(rows, reversed([dict(row) for row in rows]), strict=True):
        row.update(other)
    for row, value in zip(rows, values, strict=True):
        row["relevance_score"] = value
    return body


@defect(
    "embeddings.ranking-unsorted",
    on="json",
    paths=RERANK,
    area="embeddings",
    profile=ON,
    catches=["embeddings.rerank.sorted", "embeddings.rerank.top"],
)
def unsorted(body: Any, exchange: Exchange) -> Any:
    """A ranking comes in the order in which the documents were sent, and `top_n` is ignored."""
    if isinstance(body.get("results"), list):
        body["results"].sort(key=lambda row: row["index"])
        if isinstance(exchange.body, dict) and exchange.body.get("top_n"):
            body["results"] *= 2
    return body


@defect(
    "embeddings.ranking-incomplete",
    on="json",
    paths=RERANK,
    area="embeddings",
    profile=ON,
    catches=["embeddings.rerank.complete", "embeddings.rerank.documents"],
)
def incomplete(body: Any, exchange: Exchange) -> Any:
    """A ranking names the wrong documents, and one of them twice."""
    del exchange
    for row in body.get("results") or ():
        row["index"] = row["index"] // 2
    return body


@defect(
    "embeddings.scores-beyond",
    on="json",
    paths=SCORE,
    area="embeddings",
    profile=ON,
    faults=["EMBED-008"],
    catches=["embeddings.score.finite", "embeddings.score.order"],
)
def beyond(body: Any, exchange: Exchange) -> Any:
    """Scores are beyond any range, and numbered backwards."""
    del exchange
    rows = body.get("data") or []
    for number, row in enumerate(rows):
        row |= {"score": row["score"] * 40 + 7, "index": len(rows) - 1 - number}
    return body


def _unequal_scores(reply: Reply, exchange: Exchange) -> Reply:
    return Reply(500, b"", []) if exchange.path in (*SCORE, *RERANK) else reply


_replies(
    "embeddings.ranking-breaks",
    "Ranking and scoring break the server.",
    (*SCORE, *RERANK),
    _unequal_scores,
    catches=["embeddings.rerank.answered", "embeddings.score.unequal", "ranking.answered"],
)


def _shorter(body: Any, path: str) -> Any:
    del path
    given = body.get("input") if isinstance(body, dict) else None
    if isinstance(given, list) and given and isinstance(given[0], list):
        body["input"] = [ids[:-1] or ids for ids in given]
    return body


def _reversed_rows(body: Any, path: str) -> Any:
    del path
    given = body.get("input") if isinstance(body, dict) else None
    if isinstance(given, list) and given and isinstance(given[0], list):
        body["input"] = [ids[::-1] for ids in given]
    return body


add(
    "embeddings.ids-shorter",
    "Of several texts that are given as ids the last token is lost.",
    {"body": only(("/v1/embeddings",), _shorter)},
    profile="sim-embed",
    catches=["embeddings.id-batch.counted"],
)
add(
    "embeddings.ids-turned",
    "Several texts that are given as ids are read backwards.",
    {"body": only(("/v1/embeddings",), _reversed_rows)},
    profile="sim-embed",
    catches=["embeddings.id-batch.same"],
)
