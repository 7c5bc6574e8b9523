"""The events of a Messages stream, made from chat chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.chatchunks import ChatChunks
from pytest_vllm.sim.api.events import Event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.sim.api.chat import ChatRequest
    from pytest_vllm.sim.api.stream import Stream
    from pytest_vllm.sim.errors import ApiError
    from pytest_vllm.sim.generation import Output
    from pytest_vllm.sim.versions import Version

Body = dict[str, Any]


def anthropic_usage(usage: Body | None) -> Body:
    """Token counts: input without what came from or went to the cache."""
    if not usage:
        return {"input_tokens": 0, "output_tokens": 0}
    details = usage.get("prompt_tokens_details") or {}
    read, written = details.get("cached_tokens"), details.get("created_cache_tokens")
    made = {
        "input_tokens": max(0, usage["prompt_tokens"] - (read or 0) - (written or 0)),
        "output_tokens": usage.get("completion_tokens") or 0,
    }
    if written is not None:
        made["cache_creation_input_tokens"] = written
    if read is not None:
        made["cache_read_input_tokens"] = read
    return made


def stop_reason(
    finish: str, stopped_by: Any, version: Version, *, tool: bool
) -> tuple[str | None, str | None]:
    """(stop_reason, stop_sequence) for a finish reason."""
    if finish == "length":
        return "max_tokens", None
    if finish not in ("stop", "tool_calls"):
        return None, None
    if tool:
        return "tool_use", None
    if isinstance(stopped_by, str) and version >= "0.29.0":
        return "stop_sequence", stopped_by
    return "end_turn", None


class MessageEvents:
    """Turns chunks into message_start, content blocks, message_delta, message_stop."""

    def __init__(self, request: ChatRequest, stream: Stream) -> None:
        """For one request."""
        self.chunks = ChatChunks(request, stream)
        self.request = request
        self.block = -1
        self.kind = ""
        self.signature = ""
        self.call: int | None = None
        self.used_tool = False
        self.finish = "stop"
        self.stopped_by: Any = None

    def prepare(self, outputs: list[Output]) -> None:
        """The outputs are known."""
        self.chunks.prepare(outputs)

    def head(self) -> Iterator[Event]:
        """The message begins."""
        chunk = next(iter(self.chunks.head())).data
        message = {
            "id": chunk["id"],
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": chunk["model"],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": anthropic_usage(chunk.get("usage")),
        }
        yield _event("message_start", message=message)

    def advance(self, choice: int, begin: int, end: int) -> Iterator[Event]:
        """What the next chunk adds to the blocks."""
        for chunk in self.chunks.advance(choice, begin, end):
            entry = chunk.data["choices"][0]
            if entry["finish_reason"] is not None:
                self.finish, self.stopped_by = entry["finish_reason"], entry.get("stop_reason")
            delta = entry["delta"]
            thoughts = delta.get("reasoning") or delta.get("reasoning_content")
            if thoughts:
                yield from self._into("thinking", {"type": "thinking", "thinking": ""})
                yield self._delta(type="thinking_delta", thinking=thoughts)
            if delta.get("content"):
                yield from self._into("text", {"type": "text", "text": ""})
                yield self._delta(type="text_delta", text=delta["content"])
            for called in delta.get("tool_calls") or ():
                yield from self._call(called)

    def _call(self, called: Body) -> Iterator[Event]:
        function = called["function"]
        if "name" in function:
            self.used_tool = True
            yield from self._close()
            block = {"type": "tool_use", "id": called["id"], "name": function["name"], "input": {}}
            yield from self._into("tool_use", block)
            self.call = called["index"]
        if function.get("arguments") and called["index"] == self.call:
            yield self._delta(type="input_json_delta", partial_json=function["arguments"])

    def quick(self, choice: int, begin: int, end: int) -> bytes | None:
        """Always by way of `advance`."""
        del choice, begin, end
        return None

    def tail(self) -> Iterator[Event]:
        """The last block ends, then the message."""
        yield from self._close()
        usage = next(iter(self.chunks.tail())).data.get("usage")
        version = self.request.server.settings.version
        reason, sequence = stop_reason(self.finish, self.stopped_by, version, tool=self.used_tool)
        told = {"stop_sequence": sequence} if sequence or version >= "0.30.0" else {}
        yield _event(
            "message_delta",
            delta={"stop_reason": reason, **told},
            usage=anthropic_usage(usage),
        )
        yield _event("message_stop")

    def failure(self, error: ApiError) -> list[Event]:
        """The stream breaks."""
        return [_event("error", error={"type": error.kind, "message": error.message})]

    def _into(self, kind: str, block: Body) -> Iterator[Event]:
        if self.kind == kind:
            return
        yield from self._close()
        self.block += 1
        self.kind = kind
        self.signature = self.request.server.ids.hex(32) if kind == "thinking" else ""
        yield _event("content_block_start", content_block=block, index=self.block)

    def _close(self) -> Iterator[Event]:
        if not self.kind:
            return
        if self.signature:
            yield self._delta(type="signature_delta", signature=self.signature)
        self.kind = self.signature = ""
        yield _event("content_block_stop", index=self.block)

    def _delta(self, **delta: Any) -> Event:
        return _event("content_block_delta", delta=delta, index=self.block)


def _event(kind: str, **more: Any) -> Event:
    return Event({"type": kind, **more}, name=kind)
