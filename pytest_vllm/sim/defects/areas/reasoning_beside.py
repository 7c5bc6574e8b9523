"""Defects of thoughts beside other things: hidden ones, calls, counts, earlier thoughts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import HERE, asked, both, finished, messages, told, turns, uncalled
from pytest_vllm.sim.defects.choose import failure, refused
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, only

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

ASIDE = "The user asks for a sum."


def hidden(exchange: Exchange) -> bool:
    """Requests that want no thoughts."""
    return asked(exchange, "include_reasoning") is False


def _shown(body: Any, exchange: Exchange) -> Any:
    for _, message in messages(body) if hidden(exchange) else ():
        message["reasoning"] = ASIDE
    return body


def _shown_stream(events: list[Event], exchange: Exchange) -> list[Event]:
    return told(events, "reasoning", ASIDE) if hidden(exchange) else events


both(
    "reasoning.hidden-shown",
    "Thoughts are told though they are not wanted.",
    _shown,
    _shown_stream,
    catches=["reasoning.hidden.none", "reasoning.hidden.none-stream"],
)


def _thinking(exchange: Exchange) -> bool:
    kwargs = asked(exchange, "chat_template_kwargs")
    return isinstance(kwargs, dict) and bool(kwargs.get("enable_thinking"))


def _swallowed(body: Any, exchange: Exchange) -> Any:
    for choice, message in messages(body) if _thinking(exchange) else ():
        calls = message.pop("tool_calls", None)
        if calls:
            message["reasoning"] = f"{message.get('reasoning') or ''}{calls[0]['function']['arguments']}"
            choice["finish_reason"] = "stop"
    return body


def _swallowed_stream(events: list[Event], exchange: Exchange) -> list[Event]:
    if not _thinking(exchange) or not asked(exchange, "tools"):
        return events
    return finished(uncalled(events), lambda reason: "stop" if reason == "tool_calls" else reason)


both(
    "reasoning.call-lost",
    "A call that follows thoughts is lost.",
    _swallowed,
    _swallowed_stream,
    catches=["reasoning.tool.called", "reasoning.tool.called-stream"],
)


def _tagged(body: Any, exchange: Exchange) -> Any:
    for _, message in messages(body) if _thinking(exchange) else ():
        if message.get("tool_calls"):
            message["content"] = "</think>"
    return body


def _tagged_stream(events: list[Event], exchange: Exchange) -> list[Event]:
    return told(events, "content", "</think>") if _thinking(exchange) and asked(exchange, "tools") else events


both(
    "reasoning.tag-before-call",
    "Between thoughts and call the closing tag is left in the content.",
    _tagged,
    _tagged_stream,
    catches=["reasoning.tool.tags"],
)


def counts(name: str, summary: str, change: Callable[[int, int], Any], **facts: Any) -> None:
    """The usage tells another number of reasoning tokens: from it and the completion's."""

    def counted(usage: Any) -> None:
        details = usage.get("completion_tokens_details") if isinstance(usage, dict) else None
        if details and details.get("reasoning_tokens"):
            details["reasoning_tokens"] = change(details["reasoning_tokens"], usage["completion_tokens"])

    def whole(body: Any, exchange: Exchange) -> Any:
        del exchange
        counted(body.get("usage") if isinstance(body, dict) else None)
        return body

    def stream(events: list[Event], exchange: Exchange) -> list[Event]:
        del exchange
        for event in events:
            counted(event.data.get("usage") if isinstance(event.data, dict) else None)
        return events

    both(name, summary, whole, stream, **facts)


counts(
    "reasoning.uncounted",
    "The usage tells no reasoning tokens.",
    lambda _, __: 0,
    catches=["reasoning.usage.counted"],
)
counts(
    "reasoning.counted-twice",
    "Reasoning tokens are counted beside the completion's tokens.",
    lambda _, completion: completion + 1,
    catches=["reasoning.usage.bounded"],
)


@defect("reasoning.stream-uncounted", on="events", paths=HERE, catches=["reasoning.usage.parity"])
def stream_uncounted(events: list[Event], exchange: Exchange) -> list[Event]:
    """The usage of streams tells no reasoning tokens."""
    del exchange
    for event in events:
        usage = event.data.get("usage") if isinstance(event.data, dict) else None
        details = (usage or {}).get("completion_tokens_details")
        if details and details.get("reasoning_tokens"):
            details["reasoning_tokens"] = 0
    return events


def prompts(
    name: str, summary: str, keys: tuple[str, ...], paths: tuple[str, ...] = (CHAT,), **facts: Any
) -> None:
    """Thoughts that are sent back under these keys do not reach the prompt: it is shorter by them."""

    def whole(body: Any, exchange: Exchange) -> Any:
        lost = sum(len(str(turn[key])) // 2 for turn in turns(exchange.body) for key in keys if turn.get(key))
        usage = body.get("usage") if isinstance(body, dict) else None
        if usage and lost:
            usage["prompt_tokens"] = max(usage["prompt_tokens"] - lost, 1)
            usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
        return body

    add(name, summary, {"json": only(paths, whole)}, **facts)


prompts(
    "reasoning.old-key-dropped",
    "Thoughts that are sent back under the old key do not reach the prompt.",
    ("reasoning_content",),
    faults=["REASON-022"],
    versions="0.16 to 0.21",
    catches=["reasoning.history.keys"],
)
prompts(
    "reasoning.replay-removed",
    "Thoughts that are sent back are taken out before they reach the prompt.",
    ("reasoning", "reasoning_content"),
    faults=["REASON-023"],
    catches=["reasoning.history.rendered"],
)
refused(
    "reasoning.history-fails",
    "Thoughts that are sent back as null end in an error.",
    HERE,
    500,
    failure("'NoneType' object is not iterable"),
    lambda body: any("reasoning" in turn and turn["reasoning"] is None for turn in turns(body)),
    catches=["reasoning.history.shape"],
)
refused(
    "reasoning.fails",
    "A request that is to be thought about ends in an error of the parser.",
    HERE,
    500,
    failure("token is not in list"),
    lambda body: bool((body.get("chat_template_kwargs") or {}).get("thinking")) and body.get("n") == 2,
    catches=["reasoning.answered"],
)
