"""Embeddings, classes and raw pooled numbers: `/v1/embeddings`, `/v2/embed`, `/classify`, `/pooling`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.packing import bytes_reply, packed
from pytest_vllm.sim.api.pooled import PooledRequest, asked, checked
from pytest_vllm.sim.api.reply import Reply
from pytest_vllm.sim.check.body import bad_request
from pytest_vllm.sim.errors import ApiError, Invalid
from pytest_vllm.sim.persona.meaning import SIZE, classes, probabilities, rewards, vector

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.http.server import Call

Body = dict[str, Any]
EMBEDDING = (
    "EmbeddingCompletionRequest", "EmbeddingChatRequest", "EmbeddingBatchChatRequest",
    "EmbeddingChatInputRequest", "EmbeddingBatchChatInputRequest",
)  # fmt: skip
CLASSIFICATION = ("ClassificationCompletionRequest", "ClassificationChatRequest", "ClassificationRequest")
POOLING = ("PoolingCompletionRequest", "PoolingChatRequest")
OLD_POOLING = ("EmbeddingCompletionRequest", "EmbeddingChatRequest")


async def embeddings(server: Server, call: Call) -> Reply | None:
    """One vector per text."""
    return await _embedded(PooledRequest(server, call, asked(server, call, EMBEDDING), "embd"))


async def _embedded(request: PooledRequest) -> Reply | None:
    _narrow(request)
    prompts = request.text_prompts()
    if not await request.run(prompts):
        return None
    outputs = [_vector(request, ids) for ids in prompts]
    return _numbers(request, outputs, sum(map(len, prompts)), "embedding", "embedding")


async def cohere_embed(server: Server, call: Call) -> Reply | None:
    """Vectors as Cohere's second interface has them: in several types at once."""
    body = asked(server, call, ("CohereEmbedRequest",))
    given = [body[name] for name in ("texts", "images", "inputs") if body.get(name) is not None]
    if len(given) != 1 or not given[0]:
        what = "Exactly one of texts, images, or inputs must be provided, and it must be non-empty"
        entry = {"type": "value_error", "loc": "body", "msg": f"Value error, {what}", "input": body}
        raise bad_request([{**entry, "ctx": {"error": ValueError(what)}}])
    if body.get("images") is not None:
        raise ApiError("MultiModalParam is not supported for SimEmbeddingModel")
    texts = body.get("texts") or [_of_parts(one) for one in body["inputs"]]
    cut = {"END": "right", "START": "left"}.get(body.get("truncate") or "END")
    limit = {"truncate_prompt_tokens": body.get("max_tokens") or -1, "truncation_side": cut} if cut else {}
    request = PooledRequest(server, call, {**body, **limit, "input": texts}, "embd")
    if body.get("output_dimension"):
        request.body["dimensions"] = body["output_dimension"]
        _narrow(request)
    prompts = request.text_prompts()
    if not await request.run(prompts):
        return None
    outputs = [_vector(request, ids) for ids in prompts]
    wanted = body.get("embedding_types") or ["float"]
    kinds = {name: [_TYPED[name](row) for row in outputs] if name in wanted else None for name in _TYPED}
    counted = {"input_tokens": sum(map(len, prompts)), "image_tokens": None}
    meta = {"api_version": {"version": "2"}, "billed_units": counted}
    shown = {"embeddings": kinds, "texts": body.get("texts"), "meta": meta}
    return Reply.json({"id": request.id, **shown, "response_type": "embeddings_by_type"})


def _of_parts(one: Body) -> str:
    return "".join(part.get("text") or "" for part in one.get("content") or ())


def _bits(row: list[float], shift: int = 0) -> list[int]:
    signs = "".join("1" if value >= 0 else "0" for value in row)
    return [int(signs[at : at + 8], 2) - shift for at in range(0, len(signs), 8)]


_TYPED: dict[str, Any] = {
    "float": lambda row: row,
    "binary": lambda row: _bits(row, 128),
    "ubinary": _bits,
    "base64": lambda row: packed(row, {"encoding_format": "base64", "endianness": "little"}),
}


async def classify(server: Server, call: Call) -> Reply | None:
    """The likeliest class of each text, and the probability of every one."""
    return await _classified(PooledRequest(server, call, asked(server, call, CLASSIFICATION), "classify"))


async def _classified(request: PooledRequest) -> Reply | None:
    labels, prompts = request.server.settings.kind.labels, request.text_prompts()
    if not await request.run(prompts):
        return None
    rows = []
    for number, ids in enumerate(prompts):
        found = _classes(request, ids)
        best = labels[max(range(len(found)), key=found.__getitem__)]
        rows.append({"index": number, "label": best, "probs": found, "num_classes": len(found)})
    return Reply.json(request.answer(sum(map(len, prompts)), data=rows))


async def pooling(server: Server, call: Call) -> Reply | None:
    """What the model's pooler gives, whatever its task."""
    names = POOLING if server.settings.version >= "0.11.1" else OLD_POOLING
    prefix = "pooling" if server.settings.version >= "0.20.0" else "pool"
    return await _pooled(PooledRequest(server, call, asked(server, call, names), prefix))


async def _pooled(request: PooledRequest) -> Reply | None:
    body, kind = request.body, request.server.settings.kind
    if body.get("dimensions") is not None:
        raise Invalid("dimensions is currently not supported", "dimensions")
    task = body.get("task") or kind.pools
    if task != kind.pools:
        _other_task(request, task)
    prompts = request.text_prompts()
    by_token = task.startswith("token")
    if not await request.run(prompts, by_token=by_token):
        return None
    outputs = [_OUTPUTS[task](request, ids) for ids in prompts]
    return _numbers(request, outputs, sum(map(len, prompts)), "pooling", "data")


def _other_task(request: PooledRequest, task: str) -> None:
    settings = request.server.settings
    supported = settings.kind.listed(settings.version)
    if task == "plugin":
        text = (
            "No IOProcessor plugin installed. Please refer to the documentation and to the "
            "'prithvi_geospatial_mae_io_processor' offline inference example for more details."
        )
        raise Invalid(text, "task")
    if task not in supported:
        raise Invalid(f"Unsupported task: {task!r} Supported tasks: {supported}", "task")
    raise Invalid(f"Try switching the model's pooling_task via --pooler-config.task {task}.", "task")


def _narrow(request: PooledRequest) -> None:
    """Refuse other dimensions: the simulated model was not trained for them."""
    size, settings = request.body.get("dimensions"), request.server.settings
    if size is None:
        return
    if settings.version < "0.27.0":
        text = (
            f"Model '{settings.name}' does not support matryoshka representation, changing output dimensions "
        )
        raise ApiError(f"{text}will lead to poor results.")
    text = f"Model {settings.name!r} does not support Matryoshka embeddings; dimensions must be unset "
    raise ApiError(f"{text}(received dimensions={size}).")


def _text(request: PooledRequest, ids: list[int]) -> str:
    return request.server.tokens.decode(ids)


def _vector(request: PooledRequest, ids: list[int]) -> list[float]:
    return vector(_text(request, ids), unit=request.body.get("use_activation") is not False)


def _vectors(request: PooledRequest, ids: list[int]) -> list[list[float]]:
    unit = request.body.get("use_activation") is not False
    return [vector(request.server.tokens.token_text(id_), SIZE // 2, unit=unit) for id_ in ids]


def _classes(request: PooledRequest, ids: list[int]) -> list[float]:
    logits = classes(_text(request, ids), request.server.settings.kind.labels)
    return logits if request.body.get("use_activation") is False else probabilities(logits)


def _rewards(request: PooledRequest, ids: list[int]) -> list[list[float]]:
    return rewards(_text(request, ids), len(ids))


_OUTPUTS: dict[str, Any] = {
    "embed": _vector,
    "classify": _classes,
    "token_embed": _vectors,
    "token_classify": _rewards,
}


def _numbers(request: PooledRequest, outputs: list[Any], tokens: int, kind: str, key: str) -> Reply:
    body = request.body
    answer = request.answer(tokens)
    if body.get("encoding_format") in ("bytes", "bytes_only"):
        head = {name: answer[name] for name in ("id", "created", "model", "usage")}
        head["usage"] = {name: answer["usage"][name] for name in ("prompt_tokens", "total_tokens")}
        return bytes_reply(outputs, body, head)
    rows = [
        {"index": number, "object": kind, key: packed(values, body)} for number, values in enumerate(outputs)
    ]
    return Reply.json(request.answer(tokens, data=rows) | {"id": answer["id"]})


async def invoked(server: Server, call: Call, body: Any) -> Reply | None:
    """SageMaker's door of a pooling server: the first interface whose body fits."""
    from pytest_vllm.sim.api import scoring  # noqa: PLC0415 - it builds on this module

    kind = server.settings.kind
    if isinstance(body, dict) and {"input", "messages"} & body.keys():
        if kind.pools == "embed":
            return await _embedded(PooledRequest(server, call, checked(server, body, EMBEDDING), "embd"))
        if kind.pools == "classify":
            request = PooledRequest(server, call, checked(server, body, CLASSIFICATION), "classify")
            return await _classified(request)
    if kind.scores and isinstance(body, dict) and "query" in body:
        return await scoring.ranked(server, call, checked(server, body, scoring.RERANK))
    if kind.scores and isinstance(body, dict) and scoring.left_of(body) is not None:
        return await scoring.scored(server, call, checked(server, body, scoring.SCORE))
    return await _pooled(PooledRequest(server, call, checked(server, body, POOLING), "pooling"))
