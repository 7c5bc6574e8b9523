"""Defects of numbered rows, of numbers made twice, of large bodies, and of what a server says of itself."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.make import spoil
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import live, only

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange, Reply
    from pytest_vllm.sim.http.request import Request

HEARD, CLASSED, SCORED = ("/v1/audio/transcriptions",), ("/classify",), ("/score", "/v1/score")
#: What a proxy passes on unless told otherwise.
MOST = 1 << 20
KEY = "VLLM_API_KEY=sk-pytest-vllm-simulated"
HEARS: dict[str, Any] = {"profile": "sim-transcribe"}
RANKS: dict[str, Any] = {"profile": "sim-rerank"}
CLASSES: dict[str, Any] = {"profile": "sim-classify"}


def _flat(values: list[float]) -> list[float]:
    powers = [math.exp(value) for value in values]
    shares = math.isclose(sum(values), 1, abs_tol=1e-6)
    return [power / sum(powers) for power in powers] if shares else values


spoil(
    "classify.twice",
    "Probabilities are made of probabilities.",
    CLASSED,
    "data.*.probs",
    _flat,
    catches=["classify.raw"],
    **CLASSES,
)
for _area, _paths, _profile, _beside in (
    ("classify", CLASSED, "sim-classify", ()),
    ("embeddings", ("/v1/embeddings",), "sim-embed", ()),
    ("ranking", SCORED, "sim-rerank", ("embeddings.score.order",)),
):
    spoil(
        f"{_area}.numbers-wrap",
        "Rows of a batch are numbered anew after every third.",
        _paths,
        "data.*.index",
        lambda number: number % 3,
        catches=[f"{_area}.every.numbered", *_beside],
        profile=_profile,
    )
spoil(
    "ranking.documents-left-out",
    "Under one address of the route no document is told.",
    ("/v2/rerank",),
    "results.*.document",
    catches=["ranking.routes-alike"],
    **RANKS,
)


@defect("ranking.scores-cheap", on="json", paths=SCORED, catches=["ranking.usage-like-scores"], **RANKS)
def scores_cheap(body: Any, exchange: Exchange) -> Any:
    """Of all pairs that are scored one is billed."""
    del exchange
    for name in ("prompt_tokens", "total_tokens") if isinstance(body.get("data"), list) else ():
        body["usage"][name] //= len(body["data"])
    return body


spoil(
    "transcription.english-empty",
    "A recording that is written down in English has no text.",
    ("/v1/audio/translations",),
    "text",
    catches=["transcription.translated"],
    **HEARS,
)


@defect("transcription.one-piece", on="events", paths=HEARD, catches=["transcription.stream.pieces"], **HEARS)
def one_piece(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream brings its whole text at once, at its end."""
    del exchange
    text = "".join(str(event.delta.get("content") or "") for event in events)
    kept = [event for event in events if event.finish or not event.delta.get("content")]
    for event in kept:
        if event.finish:
            event.delta["content"] = text
    return kept


def _limited(value: Any, request: Request) -> Any:
    from pytest_vllm.sim.api.reply import Reply  # noqa: PLC0415 - defects are read before the server is

    refusal = Reply(413, b"<html>413 Request Entity Too Large</html>", [("content-type", "text/html")])
    return refusal if len(request.body) > MOST else value


add(
    "transcription.megabyte",
    "Files beyond a megabyte are refused.",
    {"route": only(HEARD, _limited)},
    catches=["transcription.large"],
    **HEARS,
)
add(
    "vision.megabyte",
    "Requests beyond a megabyte are refused.",
    {"route": only(("/v1/chat/completions",), _limited)},
    catches=["vision.large"],
    profile="spark-qwen35",
)


@defect("tokenize.strings-turned", on="json", paths=("/tokenize",), catches=["tokenize.strings-own"])
def strings_turned(body: Any, exchange: Exchange) -> Any:
    """The strings of tokens stand one place too early."""
    del exchange
    strings = body.get("token_strs")
    if strings:
        body["token_strs"] = [*strings[1:], strings[0]]
    return body


@defect("health.described-less", on="json", paths=("/openapi.json",), catches=["health.described"])
def described_less(body: Any, exchange: Exchange) -> Any:
    """The description of the routes lacks one that answers."""
    del exchange
    (body.get("paths") or {}).pop("/v1/responses", None)
    return body


@defect("metrics.refused-uncounted", on="metrics", catches=["metrics.every.answered"])
def refused_uncounted(text: str, engine: Any) -> str:
    """Refused requests are not counted."""
    del engine
    return re.sub(r'^http_requests_total\{[^\n]*status="4xx"[^\n]*\n', "", text, flags=re.MULTILINE)


@defect("classify.text-cut", on="body", paths=CLASSED, catches=["classify.single"], **CLASSES)
def text_cut(body: Any, path: str) -> Any:
    """Of a text that is no list 400 characters are read."""
    del path
    given = body.get("input") if isinstance(body, dict) else None
    return {**body, "input": given[:400]} if isinstance(given, str) else body


@defect("ranking.pair-empty", on="body", paths=SCORED, catches=["ranking.pair"], **RANKS)
def pair_empty(body: Any, path: str) -> Any:
    """Of a single pair the second text is cut to its first word."""
    del path
    right = body.get("text_2") if isinstance(body, dict) else None
    return {**body, "text_2": right.split(" ")[0]} if isinstance(right, str) else body


def _key_said(reply: Reply, exchange: Exchange) -> Reply:
    told = exchange.headers.get("authorization")
    if reply.status == 400 and told:
        reply.body = reply.body.replace(b'"message":"', f'"message":"authorization: {told}; '.encode(), 1)
    return reply


add(
    "security.key-said",
    "Refusals repeat the headers of the request, its key among them.",
    {"reply": _key_said, "ready": live},
    environ=[KEY],
    catches=["security.every.key-unsaid"],
)
