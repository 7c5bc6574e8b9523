"""Scores and rankings: `/score`, `/v1/score`, `/rerank`, `/v1/rerank`, `/v2/rerank`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.pooled import PooledRequest, asked
from pytest_vllm.sim.api.prompts import fit, tokenized
from pytest_vllm.sim.api.reply import Reply
from pytest_vllm.sim.errors import ApiError
from pytest_vllm.sim.persona.meaning import late_likeness, likeness, probabilities, relevance
from pytest_vllm.sim.tokens.tokenizer import EOS

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.http.server import Call

Body = dict[str, Any]
SCORE = (
    "ScoreQueriesDocumentsRequest", "ScoreQueriesItemsRequest", "ScoreDataRequest", "ScoreTextRequest",
    "ScoreRequest",
)  # fmt: skip
RERANK = ("RerankRequest",)
_LEFT, _RIGHT = ("queries", "data_1", "text_1"), ("documents", "items", "data_2", "text_2")
#: From here on both routes have one class and one beginning of ids.
ONE_CLASS = "0.20.0"
#: From here on a query of an embedding server counts once, however many documents it is held against.
ONCE = "0.30.0"


async def score(server: Server, call: Call) -> Reply | None:
    """How well texts fit each other, pair by pair."""
    return await scored(server, call, asked(server, call, SCORE))


async def rerank(server: Server, call: Call) -> Reply | None:
    """Documents, best first."""
    return await ranked(server, call, asked(server, call, RERANK))


def left_of(body: Body) -> Any:
    """The queries of a request for scores; None when there are none."""
    return next((body[name] for name in _LEFT if name in body), None)


async def scored(server: Server, call: Call, body: Body) -> Reply | None:
    """The answer to a request for scores whose body is read."""
    request = PooledRequest(server, call, body, "score")
    right = next(body[name] for name in _RIGHT if name in body)
    found = await _Pairs(request, left_of(body), right).values()
    if found is None:
        return None
    values, tokens = found
    rows = [{"index": number, "object": "score", "score": value} for number, value in enumerate(values)]
    return Reply.json(request.answer(tokens, data=rows))


async def ranked(server: Server, call: Call, body: Body) -> Reply | None:
    """The answer to a request for a ranking whose body is read."""
    version = server.settings.version
    request = PooledRequest(server, call, body, "score" if version >= ONE_CLASS else "rerank")
    documents = body["documents"] if isinstance(body["documents"], list) else [body["documents"]]
    found = await _Pairs(request, body["query"], documents).values()
    if found is None:
        return None
    values, tokens = found
    order = sorted(range(len(values)), key=lambda number: -values[number])
    shown = {"text": None} | ({"multi_modal": None} if version >= "0.10.0" else {})
    results = [
        {
            "index": number,
            "document": {**shown, "text": documents[number]},
            "relevance_score": values[number],
        }
        for number in order[: body.get("top_n") or len(order)]
    ]
    prompt = {"prompt_tokens": tokens} if version >= "0.13.0" else {}
    return Reply.json(
        {
            "id": request.id,
            "model": request.model,
            "usage": {**prompt, "total_tokens": tokens},
            "results": results,
        }
    )


class _Pairs:
    """Texts against texts: 1:1, 1:N or N:N."""

    def __init__(self, request: PooledRequest, left: Any, right: Any) -> None:
        """Raises ApiError where they can't be paired."""
        self.request = request
        self.left = left if isinstance(left, list) else [left]
        self.right = right if isinstance(right, list) else [right]
        for text in (*self.left, *self.right):
            if not isinstance(text, str):
                raise ApiError("MultiModalParam is not supported for SimForSequenceClassification")
        if len(self.left) > 1 and len(self.left) != len(self.right):
            raise ApiError("Input lengths must be either 1:1, 1:N or N:N")
        if not self.left:
            raise ApiError("At least one text element must be given")
        if not self.right:
            raise ApiError("At least one text_pair element must be given")

    async def values(self) -> tuple[list[float], int] | None:
        """The score of every pair, and tokens in all; None when the client left."""
        request = self.request
        kind, version = request.server.settings.kind, request.server.settings.version
        left = [self._cut(text, "query") for text in self.left]
        right = [self._cut(text, "doc") for text in self.right]
        spread = left * len(right) if len(left) == 1 else left
        if kind.pools == "classify":
            prompts = [self._fit([*a, EOS, *b]) for a, b in zip(spread, right, strict=True)]
            if not await request.run(prompts):
                return None
            pairs = [self._pair(ids, len(a)) for ids, a in zip(prompts, spread, strict=True)]
            return [self._relevance(a, b) for a, b in pairs], sum(map(len, prompts))
        texts = [self._fit(ids) for ids in (*left, *right)]
        if not await request.run(texts, by_token=kind.pools == "token_embed"):
            return None
        ones, others = texts[: len(left)], texts[len(left) :]
        ones = ones * len(others) if len(ones) == 1 else ones
        like = likeness if kind.pools == "embed" else late_likeness
        values = [like(self._text(a), self._text(b)) for a, b in zip(ones, others, strict=True)]
        paired = sum(len(a) + len(b) + 1 for a, b in zip(ones, others, strict=True))
        return values, sum(map(len, texts)) if version >= ONCE else paired

    def _cut(self, text: str, side: str) -> list[int]:
        server, name = self.request.server, f"max_tokens_per_{side}"
        most, limit = self.request.body.get(name) or 0, server.settings.max_model_len
        if most < 0:
            raise ApiError(f"{name} must be a non-negative integer")
        if most >= limit:
            raise ApiError(f"{name} ({most}) must be less than max_model_len ({limit}).")
        ids = tokenized(text, server.tokens)
        return ids[:most] if most else ids

    def _fit(self, ids: list[int]) -> list[int]:
        return fit(ids, self.request.body, self.request.server.settings)

    def _pair(self, ids: list[int], size: int) -> tuple[str, str]:
        at = ids.index(EOS, size) if EOS in ids[size:] else len(ids)
        return self._text(ids[:at]), self._text(ids[at + 1 :])

    def _text(self, ids: list[int]) -> str:
        return self.request.server.tokens.decode(ids)

    def _relevance(self, query: str, document: str) -> float:
        logit = relevance(query, document)
        return logit if self.request.body.get("use_activation") is False else probabilities([logit])[0]
