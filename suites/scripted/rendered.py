"""Scripts as the Responses and the Messages interface render them, whole or streamed, read as chat is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .answers import Called, Said, refusal

if TYPE_CHECKING:
    from pytest_vllm import Recording

Json = dict[str, Any]
_ENDS = {"tool_use": "tool_calls", "end_turn": "stop"}


def response(recording: Recording) -> Said:
    """What a Responses answer says. Raises Undecided when it was not answered, as `answers.said`."""
    if told := refusal(recording):
        return Said(errors=[told])
    if not recording.request.streams:
        return _items(recording.ok)
    found = Said()
    calls: dict[Any, Called] = {}
    for event in recording.deltas:
        kind = event.get("type")
        if kind == "response.output_text.delta":
            found.content += event["delta"]
        elif kind == "response.reasoning_text.delta":
            found.thoughts += event["delta"]
        elif kind == "response.output_item.added" and event["item"].get("type") == "function_call":
            item = event["item"]
            calls[event["output_index"]] = Called(item.get("name") or "", "", item.get("call_id"), "function")
        elif kind == "response.function_call_arguments.delta":
            calls.setdefault(event["output_index"], Called()).arguments += event["delta"]
        elif kind in ("error", "response.failed"):
            found.errors.append(str(event))
    found.calls = list(calls.values())
    found.finish = "tool_calls" if found.calls else "stop"
    return found


def last_response(recording: Recording) -> Said:
    """What the final event of a Responses stream holds. Raises Undecided when there is no stream."""
    ends = [event["response"] for event in recording.deltas if event.get("type") == "response.completed"]
    return _items(ends[-1]) if ends else Said(errors=["no response.completed"])


def _items(body: Json) -> Said:
    found = Said(usage=body.get("usage") or {})
    for item in body.get("output") or []:
        if item["type"] == "message":
            found.content += "".join(part.get("text") or "" for part in item["content"])
        elif item["type"] == "reasoning":
            found.thoughts += "".join(part.get("text") or "" for part in item.get("content") or [])
        elif item["type"] == "function_call":
            found.calls.append(Called(item["name"], item["arguments"], item.get("call_id"), "function"))
    found.finish = "tool_calls" if found.calls else "stop"
    return found


def message(recording: Recording) -> Said:
    """What a Messages answer says. Raises Undecided when it was not answered, as `answers.said`."""
    if told := refusal(recording):
        return Said(errors=[told])
    if not recording.request.streams:
        return _blocks(recording.ok)
    found = Said()
    calls: dict[Any, Called] = {}
    for event in recording.deltas:
        block, delta = event.get("content_block") or {}, event.get("delta") or {}
        if block.get("type") == "tool_use":
            calls[event["index"]] = Called(block.get("name") or "", "", block.get("id"), "function")
        kind = delta.get("type")
        if kind == "text_delta":
            found.content += delta["text"]
        elif kind == "thinking_delta":
            found.thoughts += delta["thinking"]
        elif kind == "input_json_delta":
            calls.setdefault(event["index"], Called()).arguments += delta["partial_json"]
        if delta.get("stop_reason"):
            found.finish = _ENDS.get(delta["stop_reason"], delta["stop_reason"])
        if event.get("type") == "error":
            found.errors.append(str(event))
    found.calls = [_with_object(call) for call in calls.values()]
    return found


def _blocks(body: Json) -> Said:
    found = Said(finish=_ENDS.get(body.get("stop_reason") or "", body.get("stop_reason") or ""))
    for block in body.get("content") or []:
        if block["type"] == "text":
            found.content += block["text"]
        elif block["type"] == "thinking":
            found.thoughts += block["thinking"]
        elif block["type"] == "tool_use":
            found.calls.append(Called(block["name"], json.dumps(block["input"]), block.get("id"), "function"))
    return found


def _with_object(call: Called) -> Called:
    """A call without arguments may come without any delta."""
    call.arguments = call.arguments or "{}"
    return call
