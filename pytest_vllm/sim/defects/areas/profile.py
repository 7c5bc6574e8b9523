"""Defects of a deployment that is not what its profile says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.reply import JSON, Exchange, Reply
from pytest_vllm.sim.defects.make import spoil
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import COMPLETIONS, MODELS

if TYPE_CHECKING:
    from pytest_vllm.sim.http.request import Request

spoil(
    "profile.another-version",
    "The server runs an older version than the profile names.",
    ("/version",),
    "version",
    "0.31.0",
    catches=["profile.version.expected"],
)
spoil(
    "profile.context-halved",
    "The served context is half as long as was asked for.",
    (MODELS,),
    "data.*.max_model_len",
    lambda length: length // 2 if length else length,
    catches=["profile.model.context-length"],
)


def _no_tokenizer(value: Any, request: Request) -> Any:
    if request.path in ("/tokenize", "/detokenize", "/openapi.json"):
        return Reply(404, b'{"detail":"Not Found"}', [JSON])
    return value


add(
    "profile.capability-missing",
    "Routes that the profile expects are missing: the image was built without them.",
    {"route": _no_tokenizer},
    catches=["profile.capabilities.present"],
)


@defect(
    "profile.gone-at-the-end",
    on="reply",
    paths=(COMPLETIONS,),
    faults=["MEM-006"],
    catches=["profile.server.stays-up"],
    area="profile",
)
def gone_at_the_end(reply: Reply, exchange: Exchange) -> Reply:
    """The engine dies while nothing is asked of it, before the last request."""
    asked = exchange.body or {}
    if asked.get("prompt") == "Hello" and asked.get("max_tokens") == 1 and "ignore_eos" not in asked:
        return Reply(500, b'{"error": {"message": "sample_tokens timed out", "code": 500}}', [JSON])
    return reply


def _unchanged(lines: list[str], deployment: Any) -> list[str]:
    del deployment
    return lines


add(
    "profile.variable-unknown",
    "A variable that was to choose the attention back end is one that this version no longer reads.",
    {"log": _unchanged},
    environ=["VLLM_ATTENTION_BACKEND=FLASHINFER"],
    faults=["START-035"],
    catches=["profile.log.variables-known"],
)
