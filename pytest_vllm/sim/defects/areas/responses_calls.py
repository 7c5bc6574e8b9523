"""Defects of calls, formats and thoughts over the Responses interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import RESPONSES, only

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange, Reply

HERE = (RESPONSES,)
Item = dict[str, Any]


def _items(value: Any) -> Iterator[Item]:
    """The items in a whole answer or in an event."""
    if isinstance(value, dict):
        yield from value.get("output") or ()
        yield from (value.get("response") or {}).get("output") or ()
        if isinstance(value.get("item"), dict):
            yield value["item"]


def _calls(value: Any) -> Iterator[Item]:
    return (item for item in _items(value) if item.get("type") == "function_call")


def _everywhere(name: str, summary: str, change: Callable[[Any], None], **facts: Any) -> None:
    """Whole answers and every event, changed in place."""

    def whole(body: Any, exchange: Exchange) -> Any:
        del exchange
        change(body)
        return body

    def streamed(events: list[Event], exchange: Exchange) -> list[Event]:
        del exchange
        for event in events:
            change(event.data)
        return events

    add(name, summary, {"json": only(HERE, whole), "events": only(HERE, streamed)}, **facts)


def _streamed(name: str, summary: str, change: Callable[[Any], None], **facts: Any) -> None:
    """Every event, changed in place."""

    def streamed(events: list[Event], exchange: Exchange) -> list[Event]:
        del exchange
        for event in events:
            change(event.data)
        return events

    add(name, summary, {"events": only(HERE, streamed)}, **facts)


def _as_text(value: Any) -> None:
    for item in _calls(value):
        text = f"<tool_call>{item.get('name')}</tool_call>"
        part: Item = {"type": "output_text", "text": text, "annotations": [], "logprobs": None}
        item |= {"type": "message", "role": "assistant", "content": [part] if item.get("arguments") else []}
        for name in ("arguments", "call_id", "name"):
            item.pop(name, None)
    if isinstance(value, dict) and str(value.get("type")).startswith("response.function_call_arguments"):
        value["type"] = value["type"].replace("function_call_arguments", "output_text")


def _cut(value: Any) -> None:
    for item in _calls(value):
        item["arguments"] = item["arguments"][: len(item["arguments"]) // 2]
    if isinstance(value, dict) and value.get("type") == "response.function_call_arguments.done":
        value["arguments"] = value["arguments"][: len(value["arguments"]) // 2]


def _unsure(value: Any) -> None:
    for item in _calls(value):
        item["status"] = "in_progress"
        if item["arguments"]:
            item["arguments"] = '{"bird": 7}'


def _tagged(value: Any) -> None:
    for item in _items(value):
        for part in item.get("content") or ():
            if isinstance(part.get("text"), str):
                part["text"] = f"<think>\n{part['text']}</think>"


def _prose(value: Any) -> None:
    for item in _items(value):
        for part in item.get("content") or ():
            if str(part.get("text")).startswith("{"):
                part["text"] = f"Sure. {part['text']}"


def _swapped(value: Any) -> None:
    if not isinstance(value, dict):
        return
    for holder in (value, value.get("response")):
        if not isinstance(holder, dict):
            continue
        output = holder.get("output")
        if isinstance(output, list) and output and output[0].get("type") == "reasoning":
            holder["output"] = [*output, dict(output[0], id="rs_0")]
            holder["usage"]["output_tokens_details"] = {"reasoning_tokens": 0}


_everywhere(
    "responses.calls-as-text",
    "Calls appear as text, in the markup of the model.",
    _as_text,
    faults=["RESP-002", "RESP-005"],
    catches=["responses.call.item", "responses.call.no-markup", "responses.call.streamed"],
)
_streamed(
    "responses.arguments-cut",
    "The last buffered piece of a call's arguments is not sent.",
    _cut,
    faults=["RESP-003"],
    versions="before 0.23",
    catches=["responses.call.joined", "responses.call.same"],
)
_everywhere(
    "responses.arguments-against-schema",
    "A call's arguments are not what its schema allows, and it is never completed.",
    _unsure,
    catches=["responses.call.arguments", "responses.call.status"],
)
_everywhere(
    "responses.thinking-tags",
    "The tags around the model's thoughts are part of the text.",
    _tagged,
    needs=["--default-chat-template-kwargs", '{"enable_thinking": true}'],
    catches=["responses.reasoning.no-marks"],
)
_everywhere(
    "responses.thoughts-last",
    "Thoughts come again after the message, and are not counted.",
    _swapped,
    needs=["--default-chat-template-kwargs", '{"enable_thinking": true}'],
    catches=["responses.reasoning.first", "responses.reasoning.counted"],
)
_everywhere(
    "responses.format-ignored",
    "The format of a text is not kept: prose stands before the JSON.",
    _prose,
    catches=["responses.format.schema"],
)


@defect("responses.calls-refused", on="reply", paths=HERE, catches=["responses.call.answered"])
def calls_refused(reply: Reply, exchange: Exchange) -> Reply:
    """A request that forces a call breaks the server."""
    if isinstance(exchange.body, dict) and exchange.body.get("tool_choice") == "required":
        reply.status = 500
    return reply
