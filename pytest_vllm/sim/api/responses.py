"""`/v1/responses`: OpenAI's newer interface over chat."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.chat import ChatRequest
from pytest_vllm.sim.api.reply import Reply
from pytest_vllm.sim.api.responsevents import ResponseEvents, custom_names, items_of, response_object
from pytest_vllm.sim.api.stored import begin, detached, found, keep, stores
from pytest_vllm.sim.check import rules
from pytest_vllm.sim.check.body import read_json, validated
from pytest_vllm.sim.errors import ApiError, Invalid

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.api.stream import Stream
    from pytest_vllm.sim.http.server import Call
    from pytest_vllm.sim.versions import Version

Body = dict[str, Any]
#: From here on tools that take plain text are offered to the model as functions with one text.
CUSTOM = "0.32.0"
SHIM: Body = {
    "parameters": {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
}


async def responses(server: Server, call: Call) -> Reply | None:
    """Answer a Responses request, whole or as a stream."""
    body = server.hooks.run("body", read_json(call.request), call.request.path)
    if isinstance(body, dict) and body.get("prompt") is not None:
        raise Invalid("prompt template is not supported", "prompt")
    if isinstance(body, dict):
        rules.cache_salt(body)
        rules.no_tools(body)
    body = validated("ResponsesRequest", body, server.settings.version)
    _checked(server, body)
    chat = chat_body(server, body)
    behind = bool(body.get("background")) and not body.get("stream")
    request = ChatRequest(server, detached(call) if behind else call, chat)
    response_id = body.get("request_id") or f"resp_{server.ids.hex()}"
    made = response_object(body, response_id, request)
    if behind:
        return begin(server, request, made, chat["messages"], lambda answer: finish(server, made, answer))
    if body.get("stream"):
        made_of: dict[str, ResponseEvents] = {}

        def writer(stream: Stream) -> ResponseEvents:
            made_of["it"] = ResponseEvents(request, stream, made)
            return made_of["it"]

        await request.stream(writer)
        if done := made_of["it"].done:
            keep(server, body, done, chat["messages"])
        return None
    answer = await request.whole()
    if answer is None:
        return None
    finished = finish(server, made, answer)
    keep(server, body, finished, chat["messages"])
    server.send(call, Reply.json(finished))
    return None


def _checked(server: Server, body: Body) -> None:
    for tool in body.get("tools") or ():
        if tool.get("type") == "custom" and (tool.get("format") or {}).get("type") == "grammar":
            text = (
                "Custom tools with a grammar format are not supported; only free-form text custom tools are "
            )
            raise Invalid(f"{text}accepted.", "tools")
    kinds = {one.get("type") for one in body.get("tools") or ()}
    if kinds == {"custom"} and body.get("tool_choice") == "required" and server.settings.version < CUSTOM:
        raise ApiError("", 500, "InternalServerError")  # it offers none of them, and fails over that
    if body.get("background") and body.get("store") is False:
        raise Invalid("background can only be used when `store` is true", "background")
    if body.get("background") and not stores(server):
        text = (
            "This vLLM engine does not support `store=True` and therefore does not support the "
            "background mode. To enable these features, set the environment variable "
            "`VLLM_ENABLE_RESPONSES_API_STORE=1` when launching the vLLM server."
        )
        raise ApiError(text, 400, "invalid_request_error", "background")
    tools = body.get("tools") or []
    choice = body.get("tool_choice", "auto")
    if choice == "required" and not tools:
        raise Invalid("Tool choice 'required' must be specified with 'tools' parameter.", "tool_choice")
    named = isinstance(choice, dict) and choice.get("type") in ("function", "custom")
    if named and choice.get("name") not in [tool.get("name") for tool in tools]:
        raise Invalid("Tool choice 'function' not found in 'tools' parameter.", "tool_choice")


def chat_body(server: Server, body: Body) -> Body:
    """The chat request that a Responses request means."""
    turns: list[Body] = []
    if body.get("instructions"):
        turns.append({"role": "system", "content": body["instructions"]})
    if body.get("previous_response_id"):
        turns += _history(server, body["previous_response_id"])
    given = body["input"]
    if isinstance(given, str):
        turns.append({"role": "user", "content": given})
    else:
        for item in given:
            _append(turns, item)
    kinds = ("function", "custom") if server.settings.version >= CUSTOM else ("function",)
    tools = [_tool(tool) for tool in body.get("tools") or [] if tool.get("type") in kinds] or None
    choice = body.get("tool_choice", "auto")
    if isinstance(choice, dict):
        choice = {"type": "function", "function": {"name": choice.get("name")}}
    # without a parser a choice is read and has no effect
    usable = server.settings.tool_parser and (server.settings.auto_tools or choice not in ("auto", None))
    chat: Body = {
        **{key: body[key] for key in _SAME if key in body},
        "messages": turns,
        "max_tokens": body.get("max_output_tokens"),
        "tools": tools,
        "tool_choice": choice if tools and usable else None,
        "reasoning_effort": (body.get("reasoning") or {}).get("effort"),
        "stream": body.get("stream"),
        "logprobs": "message.output_text.logprobs" in (body.get("include") or ()),
        "response_format": _format((body.get("text") or {}).get("format")),
    }
    if server.settings.version < "0.32.0" and chat.get("chat_template_kwargs"):
        kwargs = chat["chat_template_kwargs"]
        chat["chat_template_kwargs"] = {key: kwargs[key] for key in kwargs if key != "chat_template"}
    return chat


_SAME = (
    "model", "temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty",
    "repetition_penalty", "seed", "stop", "stop_token_ids", "ignore_eos", "logit_bias", "parallel_tool_calls",
    "cache_salt", "priority", "chat_template_kwargs", "structured_outputs", "include_reasoning",
    "top_logprobs", "include_stop_str_in_output", "mm_processor_kwargs", "media_io_kwargs", "vllm_xargs",
)  # fmt: skip


def _format(form: Body | None) -> Body | None:
    if not form or form.get("type") == "text":
        return None
    if form["type"] == "json_schema":
        return {
            "type": "json_schema",
            "json_schema": {"name": form.get("name"), "schema": form.get("schema")},
        }
    return {"type": form["type"]}


def _tool(tool: Body) -> Body:
    if tool.get("type") == "custom":
        return {"type": "function", "function": {**SHIM, "name": tool.get("name")}}
    function = {key: tool.get(key) for key in ("name", "description", "parameters")}
    return {"type": "function", "function": function}


def _history(server: Server, response_id: str) -> list[Body]:
    if server.settings.version < "0.32.0" and not response_id.startswith("resp_"):
        text = f"Invalid 'response_id': '{response_id}'. Expected an ID that begins with 'resp'."
        raise ApiError(text, 400, "invalid_request_error", "response_id")
    stored = found(server, response_id)
    turns = [message for message in stored["messages"] if message["role"] != "system"]
    for item in stored["response"]["output"]:
        _append(turns, item)
    return turns


def _append(turns: list[Body], item: Body) -> None:
    kind = item.get("type", "message")
    if kind == "custom_tool_call":
        item = {**item, "arguments": json.dumps({"input": item.get("input")}, ensure_ascii=False)}
        kind = "function_call"
    if kind in ("function_call_output", "custom_tool_call_output"):
        output = item.get("output")
        content = output if isinstance(output, str) else json.dumps(output)
        turns.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": content})
    elif kind == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        called = {"id": item.get("call_id"), "type": "function", "function": function}
        _turn(turns).setdefault("tool_calls", []).append(called)
    elif kind == "reasoning":
        text = "".join(part.get("text", "") for part in item.get("content") or [])
        _turn(turns, "reasoning")["reasoning"] = text
    elif item.get("role") == "assistant":
        _turn(turns, "content")["content"] = _text(item.get("content"))
    else:
        turns.append({"role": item.get("role", "user"), "content": _text(item.get("content"))})


def _turn(turns: list[Body], part: str = "") -> Body:
    """The assistant's turn that an item belongs to: the last one, unless it has such a part already."""
    if not turns or turns[-1]["role"] != "assistant" or turns[-1].get(part) is not None:
        turns.append({"role": "assistant"})
    return turns[-1]


def _text(content: Any) -> Any:
    if isinstance(content, list):
        if any(part.get("type") == "input_image" for part in content):
            return [_part(part) for part in content]
        return "".join(part.get("text") or part.get("refusal") or "" for part in content)
    return content


def _part(part: Body) -> Body:
    """A part beside a picture, or the picture itself, as chat has it."""
    if part.get("type") == "input_image":
        return {"type": "image_url", "image_url": {"url": part.get("image_url")}}
    return {"type": "text", "text": part.get("text") or part.get("refusal") or ""}


def finish(server: Server, made: Body, answer: Body) -> Body:
    """The response once the chat answer is there."""
    choice = answer["choices"][0]
    cut = choice["finish_reason"] == "length"
    items = items_of(server, choice["message"], choice.get("logprobs"), custom_names(made))
    if cut and items:
        items[-1]["status"] = "incomplete"
    return {
        **made,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": items,
        "usage": usage_of(answer["usage"], server.settings.version),
    }


def usage_of(usage: Body, version: Version) -> Body:
    """Token counts in the words of this interface."""
    details, thought = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    written = {"cache_write_tokens": details.get("created_cache_tokens") or 0}
    return {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": {
            "cached_tokens": details.get("cached_tokens") or 0,
            **(written if version >= "0.31.0" else {}),
            "input_tokens_per_turn": [],
            "cached_tokens_per_turn": [],
        },
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {
            "reasoning_tokens": thought.get("reasoning_tokens") or 0,
            "tool_output_tokens": 0,
            "output_tokens_per_turn": [],
            "tool_output_tokens_per_turn": [],
        },
        "total_tokens": usage["total_tokens"],
    }
