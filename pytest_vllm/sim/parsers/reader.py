"""From generated text to a message: thoughts, content and tool calls, whole or piece by piece."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.parsers.formats import JsonCalls, QwenXml, Reader, dumps, format_of
from pytest_vllm.sim.parsers.reasoning import ReasoningReader, split
from pytest_vllm.sim.tokens.tokenizer import MARKERS

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.generation import Output

Body = dict[str, Any]


class MessageReader:
    """Reads one choice, with the reasoning and tool parsers of the server."""

    def __init__(self, server: Server, body: Body) -> None:
        """For a request's body."""
        self.server, self.body = server, body
        settings = server.settings
        self.choice = body.get("tool_choice")
        self.named = self.choice["function"]["name"] if isinstance(self.choice, dict) else None
        self.reasons = bool(settings.reasoning_parser)
        auto = settings.auto_tools and bool(settings.tool_parser)
        wants = bool(body.get("tools")) and self.choice not in (None, "none")
        self.calls_tools = wants and (auto or self.named is not None or self.choice == "required")
        self.active = self.reasons or bool(settings.tool_parser and settings.auto_tools) or self.calls_tools
        self.hides = self.active and body.get("include_reasoning") is False
        from pytest_vllm.sim.persona.persona import thinks  # noqa: PLC0415 - persona reads parsers too

        self.thinking = thinks(server, body)
        self._reasoning = ReasoningReader(thinking=self.thinking) if self.reasons else None
        self._tools: Reader | None = None
        self._ids: dict[int, str] = {}
        self.called = False
        self.reasoning_tokens = 0
        self._content = False
        self._leading = ""
        self._in_thought = self.thinking
        if self.calls_tools:
            self._tools = self._tool_reader()

    def _tool_reader(self) -> Reader:
        if self.named is not None:
            return _Named(self.named)
        if self.choice == "required":
            return _Listed()
        kind = format_of(self.server.settings.tool_parser)
        reader: Reader = kind(self.body.get("tools")) if kind is QwenXml else kind()
        return reader

    def feed(self, piece: str, ids: list[int], *, finished: bool) -> dict[str, Any] | None:
        """The delta that a piece of text gives; None when there is nothing to tell yet."""
        if not self.active:
            return {"content": piece}
        thoughts, answer = "", piece
        if self._reasoning is not None:
            self._count(ids)
            thoughts, answer = self._reasoning.feed(piece, finished=finished)
        delta: dict[str, Any] = {}
        if thoughts and not self.hides:
            delta |= self._reasoning_keys(thoughts)
        if self._tools is None:
            if answer or (self._reasoning is None and not finished):
                delta["content"] = answer
        else:
            self._parts(self._tools.feed(answer, finished=finished), delta)
            self._note(tool=bool(delta.get("tool_calls")), streamed=True)
        return delta or None

    def _parts(self, parts: list[tuple[str, int, str]], delta: dict[str, Any]) -> None:
        calls: list[dict[str, Any]] = []
        for kind, number, text in parts:
            if kind == "text":
                if self._blank(text):
                    # kept until it is known whether words or a call come next
                    self._leading += "" if self.called or self._content else text
                    continue
                delta["content"] = delta.get("content", "") + self._leading + text
                self._leading = ""
            elif kind == "name":
                self.called = True
                calls.append(
                    {
                        "id": self.call_id(number, text),
                        "type": "function",
                        "index": number,
                        "function": {"name": text},
                    }
                )
            elif calls and calls[-1]["index"] == number:
                function = calls[-1]["function"]
                function["arguments"] = function.get("arguments", "") + text
            else:
                calls.append({"index": number, "function": {"arguments": text}})
        if (
            calls
            and self.body.get("parallel_tool_calls") is False
            and self.server.settings.version >= "0.12.0"
        ):
            calls = [call for call in calls if call["index"] == 0]
        if calls:
            if self.server.settings.version >= "0.27.0":
                delta.setdefault("content", None)
            delta["tool_calls"] = calls

    def _blank(self, text: str) -> bool:
        if not self._content and (self.called or not text.strip()):
            return not text.strip()
        self._content = True
        return self.called and not text.strip()

    def whole(self, output: Output) -> dict[str, Any]:
        """The message of a finished choice."""
        text, settings = output.text, self.server.settings
        thoughts: str | None = None
        content: str | None = text
        if self.reasons:
            thoughts, content = split(text, thinking=self.thinking)
            self._count(output.ids)
        calls: list[dict[str, Any]] = []
        if self._tools is not None:
            content, calls = self._whole_calls(content or "")
        message: dict[str, Any] = {
            "role": "assistant",
            "content": content,
            "refusal": None,
            "annotations": None,
            "audio": None,
            "function_call": None,
            "tool_calls": calls,
        }
        if self.hides:
            thoughts = None
        if settings.version >= "0.11.1":
            return {**message, "reasoning": thoughts, "reasoning_content": thoughts}
        return {**message, "reasoning_content": thoughts}

    def _whole_calls(self, text: str) -> tuple[str | None, list[dict[str, Any]]]:
        assert self._tools is not None  # noqa: S101 - the caller looked
        content = ""
        names: dict[int, str] = {}
        arguments: dict[int, str] = {}
        for kind, number, part in self._tools.feed(text, finished=True):
            if kind == "text":
                content += part if part.strip() or not names else ""
            elif kind == "name":
                names[number] = part
            else:
                arguments[number] = arguments.get(number, "") + part
        self._note(tool=bool(names), streamed=False)
        if not names:
            # a call that was opened and never named is no text
            told = content if self._tools.inside else text
            return told if told.strip() or not text else None, []
        self.called = True
        calls = [
            {
                "id": self.call_id(number, name),
                "type": "function",
                "function": {"name": name, "arguments": self._rewritten(arguments.get(number, ""))},
            }
            for number, name in sorted(names.items())
        ]
        if self.body.get("parallel_tool_calls") is False and self.server.settings.version >= "0.12.0":
            calls = calls[:1]
        if self.choice == "required" or self.named is not None:
            return "", calls
        return content if content.strip() else None, calls

    def _rewritten(self, text: str) -> str:
        if self.named is not None:
            return text
        try:
            return dumps(json.loads(text))
        except ValueError:
            return text

    def finish(self, reason: str, *, streamed: bool) -> str:
        """The finish reason that the choice tells."""
        del streamed
        if self.called and reason == "stop" and self.named is None:
            return "tool_calls"
        return reason

    def call_id(self, number: int, name: str) -> str:
        """The id of a call: one per call, in the parser's style."""
        if number not in self._ids:
            if self.server.settings.tool_parser.startswith("kimi_k2"):
                self._ids[number] = f"functions.{name}:{number}"
            elif self.server.settings.tool_parser == "mistral" and self.choice == "auto":
                self._ids[number] = self.server.ids.hex(9)
            else:
                size = 16 if self.server.settings.version >= "0.13.0" else 32
                self._ids[number] = f"chatcmpl-tool-{self.server.ids.hex(size)}"
        return self._ids[number]

    def _reasoning_keys(self, text: str) -> dict[str, str]:
        version = self.server.settings.version
        keys: dict[str, str] = {}
        if version >= "0.11.1":
            keys["reasoning"] = text
        if version < "0.16.0":
            keys["reasoning_content"] = text
        return keys

    def _count(self, ids: list[int]) -> None:
        begin, end = (self.server.tokens.special_ids[MARKERS[at]] for at in (0, 1))
        for id_ in ids:
            if id_ == end:
                self._in_thought = False
            elif self._in_thought and id_ != begin:
                self.reasoning_tokens += 1

    def _note(self, *, tool: bool, streamed: bool) -> None:
        mode = "streaming" if streamed else "non_streaming"
        self.server.parser_calls[(mode, "tool_call" if tool else "no_tool_call", "chat_completions")] += 1


class _Named(Reader):
    """A forced call: all text is its arguments."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name: str | None = name
        self._held = ""

    def feed(self, piece: str, *, finished: bool = False) -> list[tuple[str, int, str]]:
        """The name comes alone, unless the answer ends there."""
        parts: list[tuple[str, int, str]] = []
        piece, self._held = self._held + piece, ""
        if piece and self.name is not None:
            parts.append(("name", 0, self.name))
            self.name = None
            if not finished:
                self._held, piece = piece, ""
        return [*parts, ("arguments", 0, piece)] if piece else parts


class _Listed(JsonCalls):
    """Required calls: the text is a JSON list of calls."""

    markers = ("[",)
    closing = ""
