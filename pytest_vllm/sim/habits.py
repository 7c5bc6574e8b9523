"""What the made-up model and its template do that others do as well, and that no flag of vLLM says.

`VLLM_SIM_HABITS=dated,talks-on` in the environment; a name that is none of these is refused.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VARIABLE = "VLLM_SIM_HABITS"
DATED, SYSTEMLESS, ALTERNATES, TALKS_ON, THINKS = "dated", "systemless", "alternates", "talks-on", "thinks"
#: Habit: what it is.
HABITS = {
    DATED: "the template begins with the day of the request",
    SYSTEMLESS: "the template refuses a system message",
    ALTERNATES: "the template wants users and assistants in turn",
    TALKS_ON: "the model never ends an answer by itself",
    THINKS: "the model thinks, whatever it was asked",
}


def has(environ: Mapping[str, str], habit: str) -> bool:
    """Whether the model has this habit. Raises KeyError for a habit that nobody knows."""
    named = [name for name in environ.get(VARIABLE, "").split(",") if name]
    if unknown := [name for name in named if name not in HABITS]:
        raise KeyError(f"{VARIABLE}: there is no habit {unknown[0]!r}, there are {', '.join(HABITS)}")
    return habit in named


def checked(environ: Mapping[str, str], messages: Sequence[Mapping[str, Any]]) -> None:
    """Raises ApiError for what the template refuses, in the words of such templates."""
    roles = [str(message.get("role")) for message in messages if not message.get("tool_calls")]
    if has(environ, SYSTEMLESS) and "system" in roles:
        raise ApiError("System role not supported None")
    turns = [role for role in roles if role in ("user", "assistant")]
    twice = any(one == two for one, two in pairwise(turns))
    if has(environ, ALTERNATES) and (twice or turns[:1] == ["assistant"]):
        raise ApiError("Conversation roles must alternate user/assistant/user/assistant/... None")


def begun(environ: Mapping[str, str], text: str) -> str:
    """The prompt as the template begins it."""
    if not has(environ, DATED):
        return text
    return f"Today is {datetime.now(UTC):%A, %d %B %Y}.\n{text}"
