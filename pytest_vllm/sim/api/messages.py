"""`POST /v1/messages` and `/v1/messages/count_tokens`: Anthropic's interface over chat."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.chat import ChatRequest, prompt_of
from pytest_vllm.sim.api.generate import check_model
from pytest_vllm.sim.api.messagevents import MessageEvents, anthropic_usage, stop_reason
from pytest_vllm.sim.api.prompts import encode
from pytest_vllm.sim.api.reply import Reply
from pytest_vllm.sim.check.body import read_json, validated
from pytest_vllm.sim.errors import ApiError

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.http.server import Call

Body = dict[str, Any]


async def messages(server: Server, call: Call) -> Reply | None:
    """Answer a Messages request, whole or as a stream."""
    body = server.hooks.run("body", read_json(call.request), call.request.path)
    body = _checked(validated("AnthropicMessagesRequest", body, server.settings.version))
    try:
        request = ChatRequest(server, call, chat_body(body))
        if body.get("stream"):
            await request.stream(lambda stream: MessageEvents(request, stream))
            return None
        answer = await request.whole()
    except ApiError as error:
        return Reply.json(refusal(error), error.status)
    if answer is not None:
        server.send(call, Reply.json(message_of(server, answer)))
    return None


async def count_tokens(server: Server, call: Call) -> Reply:
    """How many tokens the prompt has."""
    body = server.hooks.run("body", read_json(call.request), call.request.path)
    body = validated("AnthropicCountTokensRequest", body, server.settings.version)
    try:
        check_model(server, body)
        chat = chat_body({**body, "max_tokens": 1})
        tokens = len(encode(prompt_of(server, chat), chat, server.settings, server.tokens))
    except ApiError as error:
        return Reply.json(refusal(error), error.status)
    return Reply.json({"input_tokens": tokens, "context_management": {"original_input_tokens": tokens}})


def refusal(error: ApiError) -> Body:
    """An error in Anthropic's shape."""
    return {"type": "error", "error": {"type": error.kind, "message": error.message}}


def _checked(body: Body) -> Body:
    from pytest_vllm.sim.check.body import bad_request  # noqa: PLC0415 - only for refusals

    wrong = None
    if body["max_tokens"] <= 0:
        wrong = ("max_tokens", "max_tokens must be positive")
    if not body.get("model"):
        wrong = ("model", "Model is required")
    if wrong:
        entry = {
            "type": "value_error",
            "loc": f"body.{wrong[0]}",
            "msg": f"Value error, {wrong[1]}",
            "input": body.get(wrong[0]),
            "ctx": {"error": ValueError(wrong[1])},
        }
        raise bad_request([entry])
    return body


def chat_body(body: Body) -> Body:
    """The chat request that a Messages request means."""
    turns: list[Body] = []
    system = _system(body.get("system"))
    if system:
        turns.append({"role": "system", "content": system})
    for message in body["messages"]:
        _append(turns, message)
    tools = None if body.get("tools") is None else [_tool(tool) for tool in body["tools"]]
    choice = body.get("tool_choice")
    chat: Body = {
        "model": body.get("model"),
        "messages": turns,
        "max_tokens": body["max_tokens"],
        "stop": body.get("stop_sequences"),
        "temperature": body.get("temperature"),
        "top_p": body.get("top_p"),
        "top_k": body.get("top_k"),
        "cache_salt": body.get("cache_salt"),
        "chat_template_kwargs": body.get("chat_template_kwargs"),
        "vllm_xargs": body.get("vllm_xargs"),
        "tools": tools,
        "tool_choice": _choice(choice) if choice else None if tools is None else "auto",
        "parallel_tool_calls": not (choice or {}).get("disable_parallel_tool_use"),
        "stream": body.get("stream"),
        "stream_options": {"include_usage": True, "continuous_usage_stats": True}
        if body.get("stream")
        else None,
    }
    if (body.get("thinking") or {}).get("type") == "disabled":
        chat["reasoning_effort"] = "none"
    config = body.get("output_config") or {}
    if (config.get("format") or {}).get("schema"):
        chat["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "json_schema", "schema": config["format"]["schema"]},
        }
    return chat


def _system(system: Any) -> str:
    if isinstance(system, list):
        return "".join(block.get("text") or "" for block in system)
    return system or ""


def _tool(tool: Body) -> Body:
    function = {
        "name": tool["name"],
        "description": tool.get("description"),
        "parameters": tool.get("input_schema"),
    }
    return {"type": "function", "function": function}


def _choice(choice: Body) -> Any:
    if choice["type"] == "tool":
        return {"type": "function", "function": {"name": choice["name"]}}
    return {"any": "required"}.get(choice["type"], choice["type"])


def _append(turns: list[Body], message: Body) -> None:
    if isinstance(message["content"], str):
        turns.append({"role": message["role"], "content": message["content"]})
        return
    blocks = message["content"]
    turns += [
        {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": _result(block)}
        for block in blocks
        if block["type"] == "tool_result"
    ]
    if any(block["type"] == "image" for block in blocks):
        shown = [_part(block) for block in blocks if block["type"] in ("text", "image")]
        turns.append({"role": message["role"], "content": shown})
        return
    texts = [block.get("text") or "" for block in blocks if block["type"] == "text"]
    thoughts = [block.get("thinking") or "" for block in blocks if block["type"] == "thinking"]
    calls = [_used(block) for block in blocks if block["type"] == "tool_use"]
    if texts or calls or thoughts:
        turn: Body = {"role": message["role"], "content": "\n".join(texts)}
        if calls:
            turn["tool_calls"] = calls
        if thoughts:
            turn["reasoning"] = "".join(thoughts)
        turns.append(turn)


def _part(block: Body) -> Body:
    """A picture or a text beside one, as chat has it."""
    if block["type"] == "text":
        return {"type": "text", "text": block.get("text") or ""}
    source = block.get("source") or {}
    coded = f"data:{source.get('media_type')};base64,{source.get('data')}"
    return {"type": "image_url", "image_url": {"url": source.get("url") or coded}}


def _used(block: Body) -> Body:
    function = {"name": block.get("name"), "arguments": json.dumps(block.get("input") or {})}
    return {"id": block.get("id"), "type": "function", "function": function}


def _result(block: Body) -> str:
    content = block.get("content")
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content or ""


def message_of(server: Server, answer: Body) -> Body:
    """A chat answer as a message."""
    choice = answer["choices"][0]
    message = choice["message"]
    blocks: list[Body] = []
    thoughts = message.get("reasoning") or message.get("reasoning_content")
    if thoughts:
        blocks.append({"type": "thinking", "thinking": thoughts, "signature": server.ids.hex(32)})
    if message.get("content"):
        blocks.append({"type": "text", "text": message["content"]})
    calls = message.get("tool_calls") or []
    for called in calls:
        function = called["function"]
        arguments = json.loads(function["arguments"])
        blocks.append({"type": "tool_use", "id": called["id"], "name": function["name"], "input": arguments})
    version = server.settings.version
    reason, sequence = stop_reason(choice["finish_reason"], choice["stop_reason"], version, tool=bool(calls))
    made = {
        "id": answer["id"],
        "type": "message",
        "role": "assistant",
        "content": blocks or [{"type": "text", "text": ""}],
        "model": answer["model"],
        "stop_reason": reason,
    }
    if sequence is not None:
        made["stop_sequence"] = sequence
    return {**made, "usage": anthropic_usage(answer["usage"])}
