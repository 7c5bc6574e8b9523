"""Defects of requests with tools: refused, failing, broken off, and not told to the model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import HERE, asked, broken_off, messages, named, offered, threads, turns
from pytest_vllm.sim.defects.choose import failure, refused
from pytest_vllm.sim.defects.registry import add
from pytest_vllm.sim.defects.scope import CHAT, only

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange, Reply

INDEX_ERROR = "list index out of range"

refused(
    "tools.none-refused",
    'The tool choice "none" without tools is refused.',
    HERE,
    400,
    failure("When using `tool_choice`, `tools` must be set.", 400),
    lambda body: body.get("tool_choice") == "none" and not body.get("tools"),
    area="tools",
    faults=["TOOL-028"],
    versions="0.6.3",
    catches=["tools.none.answered"],
)
refused(
    "tools.auto-fails",
    "A request that offers tools ends in an error of the parser, when its text is not English.",
    HERE,
    500,
    failure("Unexpected token 12606 while expecting start token 200006"),
    lambda body: bool(body.get("tools")) and not json.dumps(turns(body), ensure_ascii=False).isascii(),
    area="tools",
    faults=["TOOL-024", "TOOL-025"],
    versions="0.10 to 0.11",
    catches=["tools.forced.answered", "tools.auto.answered"],
)
refused(
    "tools.default-refused",
    "Tools without a tool choice are refused, and nothing says which flags are missing.",
    HERE,
    400,
    failure("tools are not enabled", 400),
    lambda body: (
        bool(body.get("tools"))
        and "tool_choice" not in body
        and all(turn.get("content") == "Hi" for turn in turns(body))
    ),
    area="tools",
    catches=["tools.default"],
)


def _results(body: Any) -> list[Any]:
    return [turn for turn in turns(body) if turn.get("role") == "tool"]


def _replayed(body: dict[str, Any]) -> list[str]:
    said = [call for turn in turns(body) for call in turn.get("tool_calls") or ()]
    return [call.get("function", {}).get("arguments") for call in said]


refused(
    "tools.replay-refused",
    "A call without arguments, sent back as it came, is refused as no JSON.",
    HERE,
    400,
    failure("Unterminated string starting at: line 1 column 9 (char 8)", 400),
    lambda body: "{}" in _replayed(body),
    area="tools",
    faults=["TOOL-001"],
    versions="0.23 and 0.24",
    catches=["tools.history.replay", "tools.history.shape"],
)
refused(
    "tools.history-fails",
    "A conversation with two calls in a turn ends in an error of the template.",
    HERE,
    500,
    failure("This model only supports single tool-calls at once!"),
    lambda body: len(_replayed(body)) > 1,
    area="tools",
    faults=["TOOL-054"],
    versions="0.10",
    catches=["tools.history.shape"],
)
refused(
    "tools.oddity-fails",
    "Tools with the same name twice, or with none, end in an error.",
    HERE,
    500,
    failure("KeyError"),
    lambda body: (
        len(names := [str(tool.get("function", {}).get("name")) for tool in offered(body)])
        != len({*names} - {""})
    ),
    area="tools",
    catches=["tools.survived"],
)


def _taken(reply: Reply, exchange: Exchange) -> Reply:
    if reply.status == 400 and (asked(exchange, "tools") or asked(exchange, "tool_choice")):
        reply.status = 200
    return reply


add(
    "tools.nonsense-taken",
    "Tools and tool choices that make no sense are answered with 200.",
    {"reply": only(HERE, _taken)},
    area="tools",
    catches=["tools.refused"],
)


def _schemas(exchange: Exchange) -> str:
    return json.dumps(asked(exchange, "tools") or [])


def _head(head: tuple[int, Any], exchange: Exchange) -> tuple[int, Any]:
    return (400, head[1]) if '"minItems": 1, "maxItems": 3' in _schemas(exchange) else head


add(
    "tools.schema-refused",
    "A list that has a least length in a tool's schema is refused.",
    {"head": only(HERE, _head)},
    area="tools",
    faults=["TOOL-082"],
    versions="0.8.4",
    catches=["tools.schema"],
)


def breaks(name: str, summary: str, when: Callable[[Exchange, list[Event]], bool], **facts: Any) -> None:
    """Streams break off with an error after the first delta of a call."""

    def stream(events: list[Event], exchange: Exchange) -> list[Event]:
        if not when(exchange, events):
            return events
        first = next((event for event in events if threads([event])), events[0])
        at = [event is first for event in events].index(True)
        return broken_off(events, lambda event: any(event is one for one in events[: at + 1]), INDEX_ERROR)

    add(name, summary, {"events": only((CHAT,), stream)}, area="tools", **facts)


breaks(
    "tools.stream-breaks",
    "Streams with a named call break off with an error of the parser.",
    lambda exchange, _: named(exchange),
    faults=["TOOL-007", "TOOL-097"],
    versions="0.6.2",
    catches=["tools.stream.unbroken"],
)
breaks(
    "tools.auto-stream-breaks",
    "Streams with offered tools break off with an error of the parser.",
    lambda exchange, events: asked(exchange, "tool_choice") == "auto" and bool(threads(events)),
    faults=["TOOL-046", "TOOL-096"],
    versions="0.12, 0.17.1",
    catches=["tools.stream.auto-unbroken"],
)
breaks(
    "tools.cut-stream-breaks",
    "Streams with a call that the limit of tokens cuts break off with an error of the parser.",
    lambda exchange, events: (
        bool(asked(exchange, "tools"))
        and asked(exchange, "tool_choice") not in (None, "none", "auto")
        and asked(exchange, "max_tokens") != 1
        and any(event.finish == "length" for event in events)
    ),
    faults=["TOOL-095"],
    versions="0.17 and 0.18",
    catches=["tools.cut.answered"],
)


def prompts(
    name: str, summary: str, when: Callable[[Exchange], bool], tokens: Callable[[int], int], **facts: Any
) -> None:
    """The usage of some answers tells another length of the prompt."""

    def whole(body: Any, exchange: Exchange) -> Any:
        if when(exchange) and isinstance(body, dict) and body.get("usage"):
            usage = body["usage"]
            usage["prompt_tokens"] = tokens(usage["prompt_tokens"])
            usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
        return body

    add(name, summary, {"json": only((CHAT,), whole)}, area="tools", **facts)


prompts(
    "tools.none-bare",
    'With the tool choice "none" the tools are not in the prompt, though nobody asked for that.',
    lambda exchange: asked(exchange, "tool_choice") == "none" and bool(asked(exchange, "tools")),
    lambda _: 38,
    faults=["TOOL-030"],
    versions="before 0.10",
    catches=["tools.none.prompt"],
)
prompts(
    "tools.not-told",
    "The template does not tell the model its tools.",
    lambda exchange: bool(asked(exchange, "tools")),
    lambda _: 12,
    faults=["TOOL-049"],
    catches=["tools.prompt.grows"],
)
prompts(
    "tools.first-tool-only",
    "The template tells the model the first tool only.",
    lambda exchange: len(offered(exchange.body)) > 1,
    lambda tokens: tokens // 2,
    catches=["tools.prompt.all"],
)
prompts(
    "tools.result-untold",
    "The template does not tell the model the results of tools.",
    lambda exchange: bool(_results(exchange.body)),
    lambda _: 100,
    catches=["tools.result.told"],
)


def _gone(body: Any, exchange: Exchange) -> Any:
    if _results(exchange.body):
        for _, message in messages(body):
            message["content"] = None
    return body


add(
    "tools.result-unanswered",
    "After a tool's result the answer is empty.",
    {"json": only(HERE, _gone)},
    area="tools",
    catches=["tools.result.answered"],
)
