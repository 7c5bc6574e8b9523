"""Defects of whole answers: keys, values, headers, statuses, metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.make import header, ignores, metric, spoil
from pytest_vllm.sim.defects.registry import defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS

if TYPE_CHECKING:
    from pytest_vllm.sim.api.reply import Exchange
    from pytest_vllm.sim.persona.turn import Answer, Turn

spoil(
    "usage.total-wrong",
    "total_tokens leaves out the completion.",
    (CHAT, COMPLETIONS),
    "usage.total_tokens",
    1,
)
spoil("chat.object-missing", "A chat answer does not name its object.", (CHAT,), "object")
ignores("chat.stop-ignored", "Stop strings are ignored.", ["stop"], (CHAT,))
header(
    "errors.content-type",
    "Answers say text/plain where they are JSON.",
    ("/v1/",),
    "content-type",
    "text/plain",
)
metric(
    "metrics.generation-flat",
    "The counter of generated tokens stays 0.",
    "vllm:generation_tokens_total",
    lambda value: value * 0,
)
metric(
    "metrics.running-missing", "The gauge of running requests is missing.", "vllm:num_requests_running", None
)


@defect("errors.string", on="json", paths=("/v1/",), area="errors")
def error_is_text(body: Any, exchange: Exchange) -> Any:
    """An error is a bare text instead of an object."""
    del exchange
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        return {"error": body["error"]["message"]}
    return body


@defect("chat.garbage", on="answer", area="chat", faults=["GIB-001"])
def garbage(answer: Answer, turn: Turn) -> Answer:
    """The model says nothing but exclamation marks."""
    del turn
    answer.content = "!" * 200
    return answer
