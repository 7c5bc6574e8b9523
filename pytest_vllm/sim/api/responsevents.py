"""The events of a Responses stream, made from chat chunks, and the objects in them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.chatchunks import ChatChunks
from pytest_vllm.sim.api.events import Event
from pytest_vllm.sim.errors import envelope

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_vllm.sim.api.chat import ChatRequest
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.api.stream import Stream
    from pytest_vllm.sim.errors import ApiError
    from pytest_vllm.sim.generation import Output

Body = dict[str, Any]


def response_object(body: Body, response_id: str, request: ChatRequest) -> Body:
    """A response that has just begun."""
    sampling = request.sampling
    return {
        "id": response_id,
        "created_at": request.created,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": body.get("metadata"),
        "model": request.model,
        "object": "response",
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "temperature": sampling.temperature,
        "tool_choice": body.get("tool_choice", "auto") if body.get("tools") else "none",
        "tools": [_tool(tool) for tool in body.get("tools") or []],
        "top_p": sampling.top_p,
        "background": bool(body.get("background")),
        "max_output_tokens": sampling.max_tokens,
        "max_tool_calls": body.get("max_tool_calls"),
        "previous_response_id": body.get("previous_response_id"),
        "prompt": body.get("prompt"),
        "reasoning": body.get("reasoning"),
        "service_tier": body.get("service_tier", "auto"),
        "status": "in_progress",
        "text": _text_wish(body.get("text")),
        "top_logprobs": sampling.logprobs,
        "truncation": body.get("truncation", "disabled"),
        "usage": None,
        "user": body.get("user"),
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "input_messages": None,
        "output_messages": None,
    }


def _tool(tool: Body) -> Body:
    """A tool as OpenAI's class for it renders it: every field, those that were not sent as null."""
    fields = {"function": _TOOL, "custom": _CUSTOM}.get(str(tool.get("type")), ())
    return {**dict.fromkeys(fields), **tool}


_CUSTOM = ("name", "type", "allowed_callers", "async", "defer_loading", "description", "format")
_TOOL = (
    "name", "parameters", "strict", "type", "allowed_callers", "async", "defer_loading", "description",
    "output_schema",
)  # fmt: skip


def _text_wish(wish: Body | None) -> Body | None:
    if wish is None:
        return None
    form = wish.get("format")
    if isinstance(form, dict) and form.get("type") == "json_schema":
        form = {**dict.fromkeys(["name", "schema", "type", "description", "strict"]), **form}
    return {"format": form, "verbosity": wish.get("verbosity")}


def custom_names(response: Body) -> list[str]:
    """The tools of a response that take plain text."""
    return [tool["name"] for tool in response["tools"] if tool.get("type") == "custom"]


def text_given(arguments: str) -> str:
    """What a tool that takes plain text was called with."""
    try:
        given = json.loads(arguments)
    except ValueError:
        return arguments
    return str(given["input"]) if isinstance(given, dict) and "input" in given else arguments


def items_of(server: Server, message: Body, logprobs: Any = None, customs: Sequence[str] = ()) -> list[Body]:
    """Output items of a chat message: thoughts, text, calls."""
    items: list[Body] = []
    thoughts = message.get("reasoning") or message.get("reasoning_content")
    if thoughts:
        items.append(_reasoning(f"rs_{server.ids.hex()}", thoughts, "completed"))
    if message.get("content"):
        listed = logprobs["content"] if logprobs else None
        items.append(_message(f"msg_{server.ids.hex()}", message["content"], "completed", listed))
    for called in message.get("tool_calls") or ():
        function = called["function"]
        if function["name"] in customs:
            text = text_given(function["arguments"])
            items.append(_custom(f"ctc_{server.ids.hex()}", called["id"], function["name"], text))
            continue
        items.append(
            _call(
                f"fc_{server.ids.hex()}", called["id"], function["name"], function["arguments"], "completed"
            )
        )
    return items


def _message(item_id: str, text: str | None, status: str, logprobs: Any = None) -> Body:
    part = {"annotations": [], "text": text, "type": "output_text", "logprobs": logprobs}
    content = [] if text is None else [part]
    return {
        "id": item_id,
        "content": content,
        "role": "assistant",
        "status": status,
        "type": "message",
        "phase": None,
    }


def _reasoning(item_id: str, text: str | None, status: str) -> Body:
    content = [] if text is None else [{"text": text, "type": "reasoning_text"}]
    return {
        "id": item_id,
        "summary": [],
        "type": "reasoning",
        "content": content,
        "encrypted_content": None,
        "status": status,
    }


def _call(item_id: str, call_id: str, name: str, arguments: str, status: str) -> Body:
    return {
        "arguments": arguments,
        "call_id": call_id,
        "name": name,
        "type": "function_call",
        "id": item_id,
        "async": None,
        "caller": None,
        "namespace": None,
        "status": status,
    }


def _custom(item_id: str, call_id: str, name: str, text: str) -> Body:
    return {
        "call_id": call_id,
        "input": text,
        "name": name,
        "type": "custom_tool_call",
        "id": item_id,
        "async": None,
        "caller": None,
        "namespace": None,
    }


class ResponseEvents:
    """Turns chunks into response.* events."""

    def __init__(self, request: ChatRequest, stream: Stream, response: Body) -> None:
        """For one request; `response` is the object that has begun."""
        self.chunks = ChatChunks(request, stream)
        self.chunks.include_usage = True
        self.request, self.response = request, response
        self.number = 0
        self.items: list[Body] = []
        self.open: Body | None = None
        self.text = ""
        self.call: int | None = None
        self.finish = "stop"

    #: The whole response, once it is there.
    done: Body | None = None

    def prepare(self, outputs: list[Output]) -> None:
        """The outputs are known."""
        self.chunks.prepare(outputs)

    def head(self) -> Iterator[Event]:
        """The response begins."""
        yield self._event("created", response=dict(self.response))
        yield self._event("in_progress", response=dict(self.response))

    def advance(self, choice: int, begin: int, end: int) -> Iterator[Event]:
        """What the next chunk adds to the items."""
        for chunk in self.chunks.advance(choice, begin, end):
            entry = chunk.data["choices"][0]
            self.finish = entry["finish_reason"] or self.finish
            delta = entry["delta"]
            thoughts = delta.get("reasoning") or delta.get("reasoning_content")
            if thoughts:
                yield from self._into("reasoning")
                yield from self._part("reasoning_text.delta", thoughts)
            if delta.get("content"):
                yield from self._into("message")
                yield from self._part(
                    "output_text.delta", delta["content"], logprobs=_flat(entry.get("logprobs"))
                )
            for called in delta.get("tool_calls") or ():
                yield from self._called(called)

    def _called(self, called: Body) -> Iterator[Event]:
        function = called["function"]
        if "name" in function:
            yield from self._close()
            self.call = called["index"]
            name = function["name"]
            if name in custom_names(self.response):
                item = _custom(f"ctc_{self._id()}", called["id"], name, "")
            else:
                item = _call(f"fc_{self._id()}", called["id"], name, "", "in_progress")
            yield from self._open(item)
        if function.get("arguments") and called["index"] == self.call and self.open is not None:
            self.text += function["arguments"]
            if self.open["type"] == "custom_tool_call":
                return
            yield self._item_event("function_call_arguments.delta", delta=function["arguments"])

    def quick(self, choice: int, begin: int, end: int) -> bytes | None:
        """Always by way of `advance`."""
        del choice, begin, end
        return None

    def tail(self) -> Iterator[Event]:
        """The last item ends, then the response."""
        from pytest_vllm.sim.api.responses import usage_of  # noqa: PLC0415 - it builds on this module

        cut = self.finish == "length"
        yield from self._close("incomplete" if cut else "completed")
        usage = next(iter(self.chunks.tail())).data["usage"]
        done = {
            **self.response,
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "output": self.items,
            "status": "incomplete" if cut else "completed",
            "usage": usage_of({"prompt_tokens_details": None, **usage}, self.request.server.settings.version),
        }
        self.done = done
        yield self._event("incomplete" if cut else "completed", response=done)

    def failure(self, error: ApiError) -> list[Event]:
        """The stream breaks."""
        return [Event(envelope(error, self.request.server.settings.version), name="error")]

    def _id(self) -> str:
        return self.request.server.ids.hex()

    def _into(self, kind: str) -> Iterator[Event]:
        if self.open is not None and self.open["type"] == kind:
            return
        yield from self._close()
        item = (
            _message(f"msg_{self._id()}", None, "in_progress")
            if kind == "message"
            else _reasoning(f"rs_{self._id()}", None, "in_progress")
        )
        yield from self._open(item)
        if kind == "message":
            part: Body = {"annotations": [], "text": "", "type": "output_text", "logprobs": []}
            yield self._item_event("content_part.added", content_index=0, part=part)
        else:
            part = {"text": "", "type": "reasoning_text"}
            yield self._item_event("reasoning_part.added", content_index=0, part=part)

    def _open(self, item: Body) -> Iterator[Event]:
        self.open, self.text = item, ""
        yield self._event("output_item.added", item=item, output_index=len(self.items))

    def _part(self, kind: str, text: str, **more: Any) -> Iterator[Event]:
        self.text += text
        yield self._item_event(kind, content_index=0, delta=text, **more)

    def _close(self, status: str = "completed") -> Iterator[Event]:
        item, self.open = self.open, None
        if item is None:
            return
        self.open = item
        if item["type"] == "message":
            done = _message(item["id"], self.text, status)
            yield self._item_event("output_text.done", content_index=0, logprobs=[], text=self.text)
            yield self._item_event("content_part.done", content_index=0, part=done["content"][0])
        elif item["type"] == "custom_tool_call":
            text = text_given(self.text)
            done = {**item, "input": text}
            yield self._item_event("custom_tool_call_input.delta", delta=text)
            yield self._item_event("custom_tool_call_input.done", input=text)
        elif item["type"] == "reasoning":
            done = _reasoning(item["id"], self.text, status)
            yield self._item_event("reasoning_text.done", content_index=0, text=self.text)
            yield self._item_event("reasoning_part.done", content_index=0, part=done["content"][0])
        else:
            done = {**item, "arguments": self.text, "status": status}
            yield self._item_event("function_call_arguments.done", arguments=self.text, name=item["name"])
        told = done
        if item["type"] == "message" and self.request.server.settings.version < "0.32.0":
            told = {**done, "summary": []}
        yield self._event("output_item.done", item=told, output_index=len(self.items))
        self.items.append(done)
        self.open = None

    def _item_event(self, kind: str, **more: Any) -> Event:
        assert self.open is not None  # noqa: S101 - callers have opened an item
        return self._event(kind, item_id=self.open["id"], output_index=len(self.items), **more)

    def _event(self, kind: str, **more: Any) -> Event:
        name = f"response.{kind}"
        data = {**more, "sequence_number": self.number, "type": name}
        event = Event({key: data[key] for key in sorted(data)}, name=name)
        self.number += 1
        return event


def _flat(logprobs: Any) -> list[Any]:
    return logprobs["content"] if logprobs else []
