"""Routes on the side: batched chat, scale-out, elastic scaling, tokenizer information."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.chat import ChatRequest
from pytest_vllm.sim.api.reply import Reply
from pytest_vllm.sim.check import rules
from pytest_vllm.sim.check.body import bad_request, read_json, validated
from pytest_vllm.sim.errors import ApiError, Invalid

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.http.server import Call

_OFF = "Scale-out endpoints are disabled. Restart vllm serve with --enable-scale-out to enable them."


async def batch(server: Server, call: Call) -> Reply | None:
    """Several conversations, one choice each."""
    body = validated("BatchChatCompletionRequest", read_json(call.request), server.settings.version)
    if body.get("n") not in (None, 1):
        raise Invalid("Batch chat completions do not support `n > 1`. Please set `n` to 1.", "n", body["n"])
    answers: list[dict[str, Any]] = []
    for conversation in body["messages"]:
        one = {**body, "messages": conversation}
        rules.chat(one)
        whole = await ChatRequest(
            server, call, validated("ChatCompletionRequest", one, server.settings.version)
        ).whole()
        if whole is None:
            return None
        answers.append(whole)
    choices = [{**answer["choices"][0], "index": number} for number, answer in enumerate(answers)]
    counts: dict[str, int | None] = {
        key: sum(answer["usage"][key] for answer in answers)
        for key in ("prompt_tokens", "total_tokens", "completion_tokens")
    }
    if "prompt_tokens_details" in answers[0]["usage"]:
        counts["prompt_tokens_details"] = None
    return Reply.json({**answers[0], "choices": choices, "usage": {**answers[0]["usage"], **counts}})


async def scale_out(server: Server, call: Call) -> Reply:
    """Routes that are off unless asked for."""
    del call
    if server.settings.version >= "0.32.0":
        raise ApiError(_OFF, 403, "PermissionDeniedError")
    raise ApiError(_OFF, 404, "NotFoundError")


async def scale(server: Server, call: Call) -> Reply:
    """Elastic expert parallelism, which there is none of."""
    del server
    try:
        body = json.loads(call.request.body or b"{}")
    except ValueError:
        raise ApiError("Invalid JSON format", 400, "Bad Request") from None
    if not isinstance(body, dict) or not body.get("new_data_parallel_size"):
        raise ApiError("new_data_parallel_size is required", 400, "Bad Request")
    raise ApiError("Elastic EP is not enabled", 400, "Bad Request")


async def is_scaling(server: Server, call: Call) -> Reply:
    """Never."""
    del server, call
    return Reply.json({"is_scaling_elastic_ep": False})


async def tokenizer_info(server: Server, call: Call) -> Reply:
    """What the tokenizer is."""
    del call
    return Reply.json(
        {"tokenizer_class": "Qwen2TokenizerFast", "model_max_length": server.settings.max_model_len}
    )


async def generative_scoring(server: Server, call: Call) -> Reply:
    """Scores by generation: needs what the simulator does not model."""
    del server
    return _unsupported(read_json(call.request), ("query", "items"))


async def decisions(server: Server, call: Call) -> Reply:
    """Structured decisions: needs what the simulator does not model."""
    del server
    return _unsupported(read_json(call.request), ("state", "questions"))


def _unsupported(body: Any, names: tuple[str, ...]) -> Reply:
    given = body if isinstance(body, dict) else {}
    missing = [
        {"type": "missing", "loc": f"body.{name}", "msg": "Field required", "input": body}
        for name in names
        if name not in given
    ]
    if missing:
        raise bad_request(missing)
    raise ApiError("The simulated model does not support this API", 501, "NotImplementedError")
