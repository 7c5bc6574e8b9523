"""Defects of scripted answers that depend on the request: limits, stop strings, tool choice, interface."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import (
    asked,
    deltas,
    messages,
    named,
    required,
    threads,
    told,
    turns,
    whole_calls,
)
from pytest_vllm.sim.defects.registry import add
from pytest_vllm.sim.defects.scope import CHAT, MESSAGES, RESPONSES, only
from pytest_vllm.sim.defects.scripted import (
    THOUGHT,
    arguments,
    counts,
    cut,
    drop_calls,
    drop_streamed_calls,
    no_content,
    no_streamed_content,
    reasons,
    scripted,
    streamed_thoughts,
    thoughts,
)

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange, Reply

PROFILE = "sim-scripted"


def forced(exchange: Exchange) -> bool:
    """Requests that force a call."""
    return required(exchange) or named(exchange)


def forbidden(exchange: Exchange) -> bool:
    """Requests that forbid calls."""
    return bool(asked(exchange, "tool_choice") == "none")


def strict(exchange: Exchange) -> bool:
    """Requests that offer a strict tool, and force none."""
    return not forced(exchange) and any(
        (one.get("function") or {}).get("strict") for one in asked(exchange, "tools") or ()
    )


def single(exchange: Exchange) -> bool:
    """Requests that allow one call."""
    return asked(exchange, "parallel_tool_calls") is False


def long_talk(exchange: Exchange) -> bool:
    """Requests with more than one turn."""
    return len(turns(exchange.body)) > 1


def hidden(exchange: Exchange) -> bool:
    """Requests that do not want to see thoughts."""
    return asked(exchange, "include_reasoning") is False


def shaped(exchange: Exchange) -> bool:
    """Requests with a schema."""
    return asked(exchange, "response_format") is not None


def stopped(exchange: Exchange) -> bool:
    """Requests with a stop string."""
    return bool(asked(exchange, "stop"))


def several(exchange: Exchange) -> bool:
    """Requests for several choices."""
    return (asked(exchange, "n") or 1) > 1


_end_whole, _end_stream = reasons(lambda reason: "tool_calls" if reason == "length" else reason)
scripted(
    "cut-untold",
    "Calls that the token limit cuts end with `tool_calls`.",
    whole=_end_whole,
    stream=_end_stream,
    catches=["scripted.cut.finish", "scripted.cut.stream-finish", "scripted.cut.always-length"],
)
scripted(
    "cut-closed",
    "Arguments that are cut are closed as if they were whole.",
    stream=arguments(lambda text: text if text.endswith("}") else text + '"}')[1],
    when=cut,
    catches=["scripted.cut.arguments"],
)


def _marked(body: Any, exchange: Exchange) -> None:
    del exchange
    for choice, message in messages(body):
        if choice["finish_reason"] == "length":
            message["content"] = '<tool_call>\n{"name'


def _marked_stream(events: list[Event], exchange: Exchange) -> list[Event]:
    del exchange
    ends = [choice.get("finish_reason") for _, choice, _ in deltas(events)]
    return told(events, "content", '<tool_call>\n{"name', last=True) if "length" in ends else events


scripted(
    "cut-markup",
    "A call that the token limit cuts is text.",
    whole=_marked,
    stream=_marked_stream,
    when=cut,
    catches=["scripted.cut.markup", "scripted.cut.stream-markup"],
)
scripted(
    "cut-thoughts",
    "With a token limit, thoughts lose their first letter.",
    whole=thoughts(lambda text: text.lstrip()[1:]),
    when=cut,
    catches=["scripted.cut.thoughts"],
)
scripted(
    "limit-hides-calls",
    "With a token limit, no call is found.",
    whole=drop_calls,
    stream=drop_streamed_calls,
    when=cut,
    catches=["scripted.cut.room"],
)
scripted(
    "stop-kept",
    "The stop string is part of the thoughts.",
    whole=thoughts(lambda text: f"{text}HALT"),
    when=stopped,
    catches=["scripted.stop.whole"],
)
scripted(
    "stop-shifts",
    "With a stop string, streamed thoughts begin with the end of their marker.",
    stream=streamed_thoughts(lambda text: f"nk>{text}"),
    when=stopped,
    catches=["scripted.stop.stream"],
)


def _bare(body: Any, exchange: Exchange) -> None:
    del exchange
    for _, message in messages(body):
        if not message.get("content"):
            message["reasoning"] = message["reasoning_content"] = None


def _bare_stream(events: list[Event], exchange: Exchange) -> list[Event]:
    del exchange
    if not any(delta.get("content") for _, _, delta in deltas(events)):
        for _, _, delta in deltas(events):
            delta.pop("reasoning", None)
    return events


scripted(
    "unclosed-lost",
    "Thoughts that no text follows are lost in whole answers.",
    whole=_bare,
    when=lambda exchange: not cut(exchange),
    catches=["scripted.shape.whole", "scripted.shape.alike"],
)
scripted(
    "unclosed-lost-streamed",
    "Thoughts that no text follows are lost in streams.",
    stream=_bare_stream,
    when=lambda exchange: not cut(exchange),
    catches=["scripted.shape.stream", "scripted.shape.alike"],
)
scripted(
    "unknown-dropped",
    "Calls of tools that were not offered are dropped.",
    whole=lambda body, exchange: (
        drop_calls(body, exchange) if any(_unknown(c["function"]) for c in whole_calls(body)) else None
    ),
    stream=lambda events, exchange: (
        drop_streamed_calls(events, exchange)
        if any(_unknown(parts[0]["function"]) for parts in threads(events).values())
        else events
    ),
    catches=["scripted.unknown.whole", "scripted.unknown.stream"],
)


def _unknown(function: dict[str, Any]) -> bool:
    return function.get("name") not in ("get_weather", "ping", "note")


_text_whole, _text_stream = arguments(json.dumps)
scripted(
    "forced-as-text",
    "The arguments of a forced call are a text that holds them.",
    whole=_text_whole,
    stream=_text_stream,
    when=forced,
    catches=["scripted.forced.whole", "scripted.forced.stream"],
)
scripted(
    "forbidden-silent",
    "Where calls are forbidden there is no text either.",
    whole=no_content,
    stream=no_streamed_content,
    when=forbidden,
    catches=["scripted.none.whole", "scripted.none.stream"],
)
scripted(
    "strict-ignored",
    "Calls of strict tools are not found.",
    whole=drop_calls,
    stream=drop_streamed_calls,
    when=strict,
    catches=["scripted.auto.strict", "scripted.auto.strict-stream"],
)
scripted(
    "single-none",
    "Where one call is allowed there is none.",
    whole=drop_calls,
    stream=drop_streamed_calls,
    when=single,
    catches=["scripted.single.whole", "scripted.single.stream"],
)
scripted(
    "talk-silences",
    "In a conversation answers have no text.",
    whole=no_content,
    when=long_talk,
    catches=["scripted.turn.again", "scripted.turn.second"],
)


def _shown(body: Any, exchange: Exchange) -> None:
    del exchange
    for _, message in messages(body):
        message["reasoning"] = THOUGHT


scripted(
    "hidden-shown",
    "Thoughts are shown although they are not wanted.",
    whole=_shown,
    stream=lambda events, exchange: told(events, "reasoning", THOUGHT) if exchange else events,
    when=hidden,
    catches=["scripted.hidden.whole", "scripted.hidden.stream"],
)


def _fenced(body: Any, exchange: Exchange) -> None:
    del exchange
    for _, message in messages(body):
        message["content"] = f"```json\n{message['content']}\n```"


scripted(
    "form-fenced",
    "JSON under a schema is fenced.",
    whole=_fenced,
    stream=lambda events, exchange: told(events, "content", "```", last=True) if exchange else events,
    when=shaped,
    catches=["scripted.form.whole", "scripted.form.stream"],
)


def _tolerant(reply: Reply, exchange: Exchange) -> Reply:
    if reply.status >= 400 and shaped(exchange) and asked(exchange, "vllm_xargs"):
        reply.status, reply.body = 200, b'{"choices":[]}'
    return reply


def _silent(events: list[Event], exchange: Exchange) -> list[Event]:
    if not (shaped(exchange) and asked(exchange, "vllm_xargs")):
        return events
    return [event for event in events if not (isinstance(event.data, dict) and event.data.get("error"))]


add(
    "scripted.grammar-ignored",
    "A text that the schema forbids is no error.",
    {"reply": only((CHAT,), _tolerant), "events": only((CHAT,), _silent)},
    profile=PROFILE,
    catches=["scripted.form.refused", "scripted.form.stream-refused"],
)


def _item_cut(body: Any, exchange: Exchange) -> Any:
    if isinstance(body, dict) and asked(exchange, "vllm_xargs"):
        for item in body.get("output") or ():
            if item.get("type") == "message":
                item["content"][0]["text"] = item["content"][0]["text"][1:]
            elif item.get("type") == "function_call":
                item["arguments"] = item["arguments"][:-1]
    return body


def _item_events_cut(events: list[Event], exchange: Exchange) -> list[Event]:
    if asked(exchange, "vllm_xargs"):
        for event in events:
            data = event.data
            if not isinstance(data, dict):
                continue
            if data.get("type") == "response.completed":
                _item_cut(data["response"], exchange)
            elif data.get("type") in ("response.output_text.delta", "response.function_call_arguments.delta"):
                data["delta"] = data["delta"].replace("e", "")
    return events


add(
    "scripted.items-cut",
    "Responses lose letters of texts and arguments.",
    {"json": only((RESPONSES,), _item_cut), "events": only((RESPONSES,), _item_events_cut)},
    profile=PROFILE,
    catches=["scripted.response.whole", "scripted.response.stream", "scripted.response.end"],
)


def _block_changed(body: Any, exchange: Exchange) -> Any:
    if isinstance(body, dict) and asked(exchange, "vllm_xargs"):
        for block in body.get("content") or ():
            if block.get("type") == "text":
                block["text"] = block["text"].upper()
            elif block.get("type") == "tool_use":
                block["input"] = {"input": block["input"]}
    return body


def _block_events_changed(events: list[Event], exchange: Exchange) -> list[Event]:
    if asked(exchange, "vllm_xargs"):
        for event in events:
            delta = event.data.get("delta") if isinstance(event.data, dict) else None
            for key in ("text", "partial_json"):
                if isinstance(delta, dict) and isinstance(delta.get(key), str):
                    delta[key] = delta[key].replace("e", "")
    return events


add(
    "scripted.blocks-changed",
    "Messages change texts and inputs.",
    {"json": only((MESSAGES,), _block_changed), "events": only((MESSAGES,), _block_events_changed)},
    profile=PROFILE,
    catches=["scripted.message.whole", "scripted.message.stream"],
)
_more_whole, _more_stream = counts("completion_tokens", lambda count: count + 1)
_twice_stream = counts("reasoning_tokens", lambda count: 2 * count + 20)[1]
scripted(
    "usage-one-more",
    "Streams count a token more than they have, and thoughts twice.",
    stream=lambda events, exchange: _twice_stream(_more_stream(events, exchange), exchange),
    catches=["scripted.usage.exact", "scripted.usage.alike", "scripted.usage.thoughts"],
)
scripted(
    "usage-beyond-limit",
    "With a token limit, a token more is counted.",
    whole=_more_whole,
    when=cut,
    catches=["scripted.usage.cut"],
)


def _second_bare(body: Any, exchange: Exchange) -> None:
    del exchange
    for choice, message in messages(body):
        if choice["index"]:
            message["content"] = None


scripted(
    "later-choices-bare",
    "Of several choices only the first has its text.",
    whole=_second_bare,
    when=several,
    catches=["scripted.choices.all"],
)
