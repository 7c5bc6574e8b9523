"""Defects of whole answers: keys, values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.sim.defects.make import ignores, spoil
from pytest_vllm.sim.defects.registry import defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS

if TYPE_CHECKING:
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


@defect("chat.garbage", on="answer", area="chat", faults=["GIB-001"])
def garbage(answer: Answer, turn: Turn) -> Answer:
    """The model says nothing but exclamation marks."""
    del turn
    answer.content = "!" * 200
    return answer
