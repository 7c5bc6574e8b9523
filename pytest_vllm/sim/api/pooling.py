"""Embeddings, scores and rankings: what pooling models serve."""

from __future__ import annotations

import base64
import math
import re
import struct
import zlib
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.generate import check_model
from pytest_vllm.sim.api.prompts import encode, fit
from pytest_vllm.sim.api.reply import Reply
from pytest_vllm.sim.check.body import bad_request, read_json
from pytest_vllm.sim.errors import ApiError, Invalid
from pytest_vllm.sim.tokens.template import render

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.http.server import Call

Body = dict[str, Any]
SIZE = 256


def vector(text: str, size: int = SIZE) -> list[float]:
    """An embedding of unit length: texts that share words and word pieces point the same way."""
    values = [0.0] * size
    for word in re.findall(r"\w+", text.lower()):
        pieces = [word, *(word[at : at + 4] for at in range(max(1, len(word) - 3)))]
        for weight, piece in zip([2.0] + [0.5] * len(pieces), pieces, strict=False):
            number = zlib.crc32(piece.encode())
            values[number % size] += weight * (1 if number & 0x10000 else -1)
    if not any(values):
        values[0] = 1.0
    length = math.sqrt(sum(value * value for value in values))
    return [value / length for value in values]


def likeness(left: str, right: str) -> float:
    """Cosine of two texts' embeddings."""
    return sum(a * b for a, b in zip(vector(left), vector(right), strict=True))


async def embeddings(server: Server, call: Call) -> Reply:
    """One vector per input."""
    body = _body(server, call, ())
    texts, tokens = _inputs(server, body)
    size = body.get("dimensions")
    if size is not None:
        text = (
            f"Model '{server.settings.name}' does not support matryoshka representation, changing output "
            "dimensions "
        )
        raise ApiError(text + "will lead to poor results.")
    kind = body.get("encoding_format", "float")
    if kind not in ("float", "base64", "bytes"):
        raise bad_request(
            [
                {
                    "type": "literal_error",
                    "loc": "body.encoding_format",
                    "msg": "Input should be 'float', 'base64' or 'bytes'",
                    "input": kind,
                }
            ]
        )
    rows = [
        {"index": number, "object": "embedding", "embedding": _encoded(vector(text), kind)}
        for number, text in enumerate(texts)
    ]
    return _answer(server, "embd", tokens, data=rows)


async def pooling(server: Server, call: Call) -> Reply:
    """The same as raw pooled data."""
    texts, tokens = _inputs(server, _body(server, call, ()))
    rows = [{"index": number, "object": "pooling", "data": vector(text)} for number, text in enumerate(texts)]
    return _answer(server, "pool", tokens, data=rows)


async def score(server: Server, call: Call) -> Reply:
    """How well texts fit each other, pair by pair."""
    body = _body(server, call, ())
    left = body.get("text_1", body.get("queries", body.get("data_1")))
    right = body.get("text_2", body.get("documents", body.get("items", body.get("data_2"))))
    if left is None or right is None:
        raise bad_request(
            [{"type": "missing", "loc": "body.queries", "msg": "Field required", "input": body}]
        )
    left, right = _listed(left), _listed(right)
    if len(left) not in (1, len(right)):
        raise ApiError("Input lengths must be either 1:1, 1:N or N:N")
    pairs = list(zip(left * len(right) if len(left) == 1 else left, right, strict=True))
    tokens = [len(server.tokens.encode(a)) + len(server.tokens.encode(b)) + 1 for a, b in pairs]
    rows = [
        {"index": number, "object": "score", "score": likeness(a, b)} for number, (a, b) in enumerate(pairs)
    ]
    return _answer(server, "score", tokens, data=rows)


async def rerank(server: Server, call: Call) -> Reply:
    """Documents, best first."""
    body = _body(server, call, ("query", "documents"))
    documents = body["documents"]
    ranked = sorted(
        ((likeness(body["query"], document), number) for number, document in enumerate(documents)),
        key=lambda entry: (-entry[0], entry[1]),
    )
    top = body.get("top_n") or len(ranked)
    results = [
        {
            "index": number,
            "document": {"text": documents[number], "multi_modal": None},
            "relevance_score": value,
        }
        for value, number in ranked[:top]
    ]
    query = len(server.tokens.encode(body["query"]))
    total = sum(query + len(server.tokens.encode(document)) + 1 for document in documents)
    _count(server, [total])
    usage = {"prompt_tokens": total, "total_tokens": total}
    return Reply.json(
        {
            "id": f"rerank-{server.ids.hex()}",
            "model": server.settings.name,
            "usage": usage,
            "results": results,
        }
    )


def _body(server: Server, call: Call, required: tuple[str, ...]) -> Body:
    body = server.hooks.run("body", read_json(call.request), call.request.path)
    given = body if isinstance(body, dict) else {}
    missing = [
        {"type": "missing", "loc": f"body.{name}", "msg": "Field required", "input": body}
        for name in required
        if name not in given
    ]
    if missing or not isinstance(body, dict):
        raise bad_request(
            missing
            or [
                {
                    "type": "model_attributes_type",
                    "loc": "body",
                    "msg": "Input should be a valid dictionary or object to extract fields from",
                    "input": body,
                }
            ]
        )
    check_model(server, given)
    return given


def _inputs(server: Server, body: Body) -> tuple[list[str], list[int]]:
    if "messages" in body:
        given: list[Any] = [render(body["messages"], None, ask=False)]
    elif "input" not in body:
        raise bad_request([{"type": "missing", "loc": "body.input", "msg": "Field required", "input": body}])
    else:
        given = body["input"] if isinstance(body["input"], list) else [body["input"]]
        if given and all(isinstance(part, int) for part in given):
            given = [given]
    if not given:
        raise ApiError("Please provide at least one prompt")
    texts, tokens = [], []
    for part in given:
        if isinstance(part, list):
            wrong = [id_ for id_ in part if not 0 <= id_ < server.tokens.size]
            if wrong:
                raise ApiError(f"Token id {wrong[0]} is out of vocabulary")
            ids = fit(part, body, server.settings)
        elif isinstance(part, str):
            ids = encode(part, body, server.settings, server.tokens)
        else:
            raise bad_request(
                [
                    {
                        "type": "string_type",
                        "loc": "body.input",
                        "msg": "Input should be a valid string",
                        "input": part,
                    }
                ]
            )
        if not ids:
            raise Invalid("The decoder prompt cannot be empty")
        texts.append(server.tokens.decode(ids))
        tokens.append(len(ids))
    return texts, tokens


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def _encoded(values: list[float], kind: str) -> Any:
    if kind == "float":
        return values
    return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()


def _answer(server: Server, prefix: str, tokens: list[int], **more: Any) -> Reply:
    _count(server, tokens)
    usage = server.shapes.usage(sum(tokens), 0)
    return Reply.json(
        {
            "id": f"{prefix}-{server.ids.hex()}",
            "object": "list",
            "created": int(server.clock.wall()),
            "model": server.settings.name,
            **more,
            "usage": usage,
        }
    )


def _count(server: Server, tokens: list[int]) -> None:
    stats = server.engine.stats
    for number in tokens:
        stats.counters["prompt_tokens"] += number
        stats.finished["stop"] += 1
        stats.observe("request_prompt_tokens", number)
