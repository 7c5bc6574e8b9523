"""Defects of thoughts: where they end up, under which key, with what beside them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import (
    BOTH,
    HERE,
    STREAM,
    asked,
    both,
    deltas,
    finished,
    messages,
    thought_of,
    told,
    turns,
)
from pytest_vllm.sim.defects.registry import defect

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

    When = Callable[[Exchange], bool]

KEYS = ("reasoning", "reasoning_content")
#: Tokens from which on a request leaves room for thoughts.
LONG = 200
#: Tokens that the closed thought takes in the prompt.
SWITCH = 4
EOS = "<\uff5cend_of_sentence\uff5c>"


def always(exchange: Exchange) -> bool:
    """Every request."""
    del exchange
    return True


def off(exchange: Exchange) -> bool:
    """Requests that switch thinking off."""
    kwargs = asked(exchange, "chat_template_kwargs")
    return isinstance(kwargs, dict) and kwargs.get("enable_thinking") is False


def roomy(exchange: Exchange) -> bool:
    """Requests that leave room for thoughts."""
    tokens = asked(exchange, "max_tokens")
    return isinstance(tokens, int) and tokens > LONG


def unshaped(exchange: Exchange) -> bool:
    """Those of them that ask for no format."""
    return off(exchange) and not (asked(exchange, "response_format") or asked(exchange, "structured_outputs"))


def shaped(exchange: Exchange) -> bool:
    """Requests that ask for a format after thoughts."""
    kwargs = asked(exchange, "chat_template_kwargs")
    return isinstance(kwargs, dict) and bool(kwargs.get("thinking") and asked(exchange, "response_format"))


def unparsed(  # noqa: PLR0917 - the two tags are read in their order
    name: str,
    summary: str,
    opening: str,
    closing: str,
    points: tuple[str, ...] = BOTH,
    when: When = always,
    **facts: Any,
) -> None:
    """Thoughts are not taken out: they are the beginning of the content, between these tags."""

    def whole(body: Any, exchange: Exchange) -> Any:
        for _, message in messages(body) if when(exchange) else ():
            thoughts = thought_of(message)
            if thoughts:
                message["content"] = f"{opening}{thoughts}{closing}{message.get('content') or ''}"
                _silence(message)
        return body

    def stream(events: list[Event], exchange: Exchange) -> list[Event]:
        if not when(exchange):
            return events
        begun, inside = False, False
        for _, _, delta in deltas(events):
            thoughts = thought_of(delta)
            if thoughts:
                delta["content"] = ("" if begun else opening) + thoughts
                begun = inside = True
                _drop(delta)
            elif inside and delta.get("content"):
                delta["content"], inside = closing + delta["content"], False
        return events

    both(name, summary, whole, stream, points, **facts)


def _drop(part: dict[str, Any]) -> None:
    for key in KEYS:
        part.pop(key, None)


def _silence(message: dict[str, Any]) -> None:
    """A message without thoughts still has the key."""
    for key in KEYS:
        if key in message:
            message[key] = None


unparsed(
    "reasoning.tags-streamed",
    "In streams the thoughts are content, tags and all.",
    "<mm:think>",
    "</mm:think>",
    STREAM,
    faults=["REASON-002"],
    versions="until 0.26",
    catches=["reasoning.parity.thoughts", "reasoning.tags.content"],
)
unparsed(
    "reasoning.appended",
    "The parser leaves the thoughts in the content, with their tags.",
    "<think>",
    "</think>",
    faults=["REASON-003", "REASON-016"],
    versions="0.15.1, 0.8.5",
    catches=["reasoning.tags.content"],
)
unparsed(
    "reasoning.not-parsed",
    "Thoughts and the tag that ends them are content, and the reasoning is null.",
    "",
    "</think>",
    faults=["REASON-005", "REASON-006"],
    versions="0.7.2, 0.21",
    catches=["reasoning.tags.content"],
)


def _swallowed(body: Any, exchange: Exchange, when: When) -> Any:
    for _, message in messages(body) if when(exchange) else ():
        content = message.get("content")
        if content:
            message["reasoning"] = f"{thought_of(message)}{content}"
            message["content"] = None
    return body


def _swallowed_stream(events: list[Event], exchange: Exchange, when: When) -> list[Event]:
    for _, _, delta in deltas(events) if when(exchange) else ():
        if delta.get("content"):
            delta["reasoning"] = thought_of(delta) + delta.pop("content")
    return events


def swallows(name: str, summary: str, when: When, points: tuple[str, ...] = BOTH, **facts: Any) -> None:
    """The text of some answers is in the reasoning, and the content is empty."""
    both(
        name, summary, partial(_swallowed, when=when), partial(_swallowed_stream, when=when), points, **facts
    )


swallows(
    "reasoning.off-swallowed",
    "With thinking switched off the whole answer is reasoning, and the content is null.",
    unshaped,
    faults=["REASON-014", "REASON-015"],
    versions="0.8.5 to 0.32 with the deepseek_r1 parser",
    catches=["reasoning.off.content", "reasoning.off.content-stream"],
)
swallows(
    "reasoning.schema-swallowed",
    "What a response format asks for is in the reasoning.",
    shaped,
    catches=["reasoning.schema.valid", "reasoning.schema.valid-stream"],
)
swallows(
    "reasoning.hidden-swallowed",
    "Where the thoughts are not wanted, the text is gone too.",
    lambda exchange: asked(exchange, "include_reasoning") is False,
    catches=["reasoning.hidden.content"],
)


def _with_end(body: Any, exchange: Exchange) -> Any:
    del exchange
    for _, message in messages(body):
        if thought_of(message):
            message["reasoning"] = f"{thought_of(message)}{message.get('content') or ''}{EOS}"
            message["content"] = ""
    return body


def _with_end_stream(events: list[Event], exchange: Exchange) -> list[Event]:
    thinks = any(thought_of(delta) for _, _, delta in deltas(events))
    return (
        told(_swallowed_stream(events, exchange, always), "reasoning", EOS, last=True) if thinks else events
    )


both(
    "reasoning.end-in-thoughts",
    "The answer and the token that ends it are in the reasoning, and the content is empty.",
    _with_end,
    _with_end_stream,
    faults=["REASON-019"],
    catches=["reasoning.tags.thoughts", "reasoning.content.given"],
)


def _aside(body: Any, exchange: Exchange) -> Any:
    if off(exchange):
        for _, message in messages(body):
            message["reasoning"] = "Okay, so the user asks for a sum."
    return body


def _aside_stream(events: list[Event], exchange: Exchange) -> list[Event]:
    return told(events, "reasoning", "Okay, so the user asks for a sum.") if off(exchange) else events


both(
    "reasoning.off-ignored",
    "The model thinks although that was switched off.",
    _aside,
    _aside_stream,
    faults=["REASON-017"],
    catches=["reasoning.off.quiet", "reasoning.off.content-stream"],
)


@defect(
    "reasoning.default-ignored",
    on="json",
    paths=HERE,
    needs=["--default-chat-template-kwargs", '{"enable_thinking":false}'],
    faults=["REASON-026"],
    catches=["reasoning.off.default"],
)
def default_ignored(body: Any, exchange: Exchange) -> Any:
    """The server's own default for thinking is ignored where there is room to think."""
    if asked(exchange, "chat_template_kwargs") is None and roomy(exchange):
        for _, message in messages(body):
            message["reasoning"] = "Okay, so the user asks something."
    return body


@defect(
    "reasoning.not-streamed",
    on="events",
    paths=HERE,
    faults=["REASON-011", "REASON-018"],
    catches=["reasoning.parity.thoughts"],
)
def not_streamed(events: list[Event], exchange: Exchange) -> list[Event]:
    """Streams have lost their thoughts on the way."""
    del exchange
    for _, _, delta in deltas(events):
        _drop(delta)
    return events


def _renamed(body: Any, exchange: Exchange) -> Any:
    del exchange
    for _, message in messages(body):
        if thought_of(message):
            message["reasoning_content"] = message.pop("reasoning")
    return body


def _renamed_stream(events: list[Event], exchange: Exchange) -> list[Event]:
    del exchange
    for _, _, delta in deltas(events):
        if thought_of(delta):
            delta["reasoning_content"] = delta.pop("reasoning")
    return events


both(
    "reasoning.key-old",
    "Thoughts come under the key of older versions.",
    _renamed,
    _renamed_stream,
    faults=["REASON-011"],
    catches=["reasoning.key", "reasoning.key-stream"],
)


def _cut(body: Any, exchange: Exchange) -> Any:
    del exchange
    for choice, message in messages(body):
        if choice["finish_reason"] == "length" and thought_of(message) and not message.get("content"):
            choice["finish_reason"] = "stop"
            _silence(message)
    return body


def _cut_stream(events: list[Event], exchange: Exchange) -> list[Event]:
    del exchange
    thinks = any(thought_of(delta) for _, _, delta in deltas(events))
    return finished(events, lambda _: "stop") if thinks else events


both(
    "reasoning.cut-stop",
    "Thoughts that the limit of tokens cuts end with `stop`, and nothing is told.",
    _cut,
    _cut_stream,
    faults=["REASON-020"],
    versions="0.11.0",
    catches=["reasoning.cut.finish"],
)
unparsed(
    "reasoning.cut-content",
    "Thoughts that the limit of tokens cuts are the content.",
    "",
    "",
    ("json",),
    lambda exchange: asked(exchange, "max_tokens") in range(1, 9),
    catches=["reasoning.cut.place", "reasoning.cut.parity"],
)


@defect("reasoning.second-choice", on="json", paths=HERE, catches=["reasoning.two.apart"])
def second_choice(body: Any, exchange: Exchange) -> Any:
    """Of several choices only the first has its thoughts taken out."""
    del exchange
    for choice, message in messages(body):
        if choice["index"] and thought_of(message):
            message["content"] = f"{thought_of(message)}\n{message.get('content') or ''}"
            _silence(message)
    return body


unparsed(
    "reasoning.user-tag",
    "A tag in the user's message ends the thoughts of the answer.",
    "",
    "",
    ("json",),
    lambda exchange: any("</think>" in str(turn.get("content")) for turn in turns(exchange.body)),
    catches=["reasoning.typed-tag"],
)


def _ignored(usage: Any, exchange: Exchange) -> None:
    if unshaped(exchange) and isinstance(usage, dict) and usage.get("prompt_tokens"):
        usage["prompt_tokens"] -= SWITCH
        usage["total_tokens"] -= SWITCH


def _unswitched(body: Any, exchange: Exchange) -> Any:
    _ignored(body.get("usage") if isinstance(body, dict) else None, exchange)
    return body


def _unswitched_stream(events: list[Event], exchange: Exchange) -> list[Event]:
    for event in events:
        _ignored(event.data.get("usage") if isinstance(event.data, dict) else None, exchange)
    return events


both(
    "reasoning.switch-ignored",
    "Template arguments of a request do not reach the template.",
    _unswitched,
    _unswitched_stream,
    faults=["REASON-017"],
    catches=["reasoning.off.honoured"],
)
