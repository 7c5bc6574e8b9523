"""Answers to judge, written down as a server would send them."""

from __future__ import annotations

import json
from typing import Any

from pytest_vllm.wire.recording import Recording, Request


def whole(message: dict[str, Any], finish: str = "tool_calls", **usage: Any) -> Recording:
    """A whole answer of one choice."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    body = json.dumps({"choices": [choice], "usage": usage}).encode()
    request = Request("POST", "/v1/chat/completions", json={"messages": []})
    return Recording("whole", request, status=200, chunks=((0.1, body),))


def stream(
    *deltas: dict[str, Any], finish: str = "tool_calls", usage: dict[str, Any] | None = None
) -> Recording:
    """A stream of one choice, one event per delta."""
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    events: list[dict[str, Any]] = [{"choices": [choice]} for choice in choices]
    events += [{"choices": [], "usage": usage}] if usage else []
    texts = [f"data: {json.dumps(event)}\n\n".encode() for event in events]
    chunks = tuple((number / 10, text) for number, text in enumerate([*texts, b"data: [DONE]\n\n"]))
    request = Request("POST", "/v1/chat/completions", json={"messages": [], "stream": True})
    return Recording("stream", request, status=200, chunks=chunks)


def piece(index: int | None = 0, arguments: str | None = None, **more: Any) -> dict[str, Any]:
    """A delta with a piece of a call."""
    function = {key: more.pop(key) for key in ("name",) if key in more}
    if arguments is not None:
        function["arguments"] = arguments
    part = {"function": function, **more}
    return {"tool_calls": [part if index is None else {"index": index, **part}]}


def call(name: str = "f", arguments: str = "{}", id: str = "c1") -> dict[str, Any]:  # noqa: A002 - the field's name
    """A call of a whole answer."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
