"""Defects of whole answers: keys, values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import in_body
from pytest_vllm.sim.defects.make import ignores, spoil
from pytest_vllm.sim.defects.registry import defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS

if TYPE_CHECKING:
    from pytest_vllm.sim.persona.turn import Answer, Turn


def _prompt_only(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    body["usage"]["total_tokens"] = body["usage"]["prompt_tokens"]


in_body(
    "usage.total-wrong",
    "`total_tokens` leaves out the completion.",
    (CHAT, COMPLETIONS),
    _prompt_only,
    lambda asked: not asked.get("echo"),
    catches=["usage.total"],
)
spoil(
    "chat.object-missing",
    "A chat answer does not name its object.",
    (CHAT,),
    "object",
    catches=["chat.schema"],
)
ignores("chat.stop-ignored", "Stop strings are ignored.", ["stop"], (CHAT,), catches=["chat.stop.text"])


@defect("chat.garbage", on="answer", area="canary", faults=["GIB-001"], catches=["canary.words.runs"])
def garbage(answer: Answer, turn: Turn) -> Answer:
    """The model says nothing but exclamation marks."""
    if not turn.constraint and not turn.tools:
        answer.content = "!" * 200
    return answer
