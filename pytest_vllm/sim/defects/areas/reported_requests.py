"""Faults of public reports that show only where a request meets their condition: conversations misread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import failure, refused
from pytest_vllm.sim.defects.registry import add
from pytest_vllm.sim.defects.scope import CHAT

if TYPE_CHECKING:
    from collections.abc import Callable

Turns = list[Any]


def _reading(change: Callable[[Turns], Turns]) -> Callable[[Any, str], Any]:
    """What becomes of the messages of a request, on every route that reads any."""

    def read(body: Any, path: str) -> Any:
        del path
        if isinstance(body, dict) and isinstance(body.get("messages"), list):
            body["messages"] = change(body["messages"])
        return body

    return read


def _hidden(turns: Turns) -> Turns:
    return [one for one in turns if not (isinstance(one, dict) and one.get("tool_calls") == [])] or turns


def _none(turns: Turns) -> Turns:
    for one in turns:
        if isinstance(one, dict) and one.get("tool_calls") and one.get("content", "") is None:
            one["content"] = "None"
    return turns


add(
    "tools.empty-calls-hide",
    "A message with an empty list of calls does not reach the prompt.",
    {"body": _reading(_hidden)},
    faults=["vllm-project/vllm#30648"],
    catches=["tools.history.same"],
)
add(
    "tools.null-becomes-none",
    "Content that is null beside calls reaches the prompt as the word None.",
    {"body": _reading(_none)},
    faults=["vllm-project/vllm#54337"],
    catches=["tools.history.no-content", "tools.history.same"],
)


def _no_arguments(asked: dict[str, Any]) -> bool:
    turns = [one for one in asked.get("messages") or () if isinstance(one, dict)]
    calls = [call for one in turns for call in one.get("tool_calls") or () if isinstance(call, dict)]
    return any((call.get("function") or {}).get("arguments") in ("null", "{}") for call in calls)


refused(
    "tools.no-arguments-refused",
    "A history with a call without arguments ends in an error of the program.",
    (CHAT,),
    400,
    failure("'None' has no attribute 'items'", 400),
    _no_arguments,
    faults=["vllm-project/vllm#43851"],
    catches=["tools.history.words", "tools.history.shape"],
)
