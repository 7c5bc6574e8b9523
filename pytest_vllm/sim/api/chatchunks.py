"""The events of a chat stream, and the message of a whole answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.events import DONE, Event, quoted, template, wire
from pytest_vllm.sim.api.generate import broken
from pytest_vllm.sim.api.shapes import without_null
from pytest_vllm.sim.generation import behind, logprobs
from pytest_vllm.sim.parsers.reader import MessageReader
from pytest_vllm.sim.vision import PAD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.sim.api.chat import ChatRequest
    from pytest_vllm.sim.api.stream import Stream
    from pytest_vllm.sim.errors import ApiError
    from pytest_vllm.sim.generation import Output


_MARK = "\u0000text\u0000"


class ChatChunks:
    """Makes `chat.completion.chunk` events."""

    def __init__(self, request: ChatRequest, stream: Stream | None) -> None:
        """For one request; `stream` is None when only whole answers are made."""
        self.request, self.stream = request, stream
        self.outputs: list[Output] = []
        self.readers: list[MessageReader] = []
        body, settings = request.body, request.server.settings
        options = body.get("stream_options") or {}
        default = settings.version < "0.18.0" and body.get("stream_options") is not None
        self.include_usage = bool(options.get("include_usage", default))
        self.each_usage = self.include_usage and bool(options.get("continuous_usage_stats"))
        if settings.args.get("enable_force_include_usage"):
            self.include_usage = self.each_usage = True
        self.plain = not (self.each_usage or body.get("return_token_ids") or body.get("logprobs"))
        self._templates: dict[tuple[int, str], tuple[bytes, bytes]] = {}
        self.reasoned: list[int] = []

    def prepare(self, outputs: list[Output]) -> None:
        """Set up one reader per choice, once the outputs are known."""
        self.outputs = outputs
        self.readers = [MessageReader(self.request.server, self.request.body) for _ in self.outputs]

    def head(self) -> Iterator[Event]:
        """The role of every choice, and the echoed message."""
        request = self.request
        body = request.body
        for number in range(len(self.outputs)):
            yield self._chunk(
                {
                    "index": number,
                    "delta": {"role": self.role, "content": ""},
                    "logprobs": None,
                    "finish_reason": None,
                },
                0,
                prompt_token_ids=request.prompt if body.get("return_token_ids") else None,
                prompt_text=request.told_prompt,
            )
        echoed = self.echoed
        if echoed:
            for number in range(len(self.outputs)):
                choice = {
                    "index": number,
                    "delta": {"content": echoed},
                    "logprobs": None,
                    "finish_reason": None,
                }
                yield self._chunk(choice, 0)

    def advance(self, choice: int, begin: int, end: int) -> Iterator[Event]:
        """A chunk for the tokens from `begin` to `end`, when they show anything."""
        output, request = self.outputs[choice], self.request
        body = request.body
        finished = end >= len(output.ids)
        reader = self.readers[choice]
        delta = reader.feed("".join(output.pieces[begin:end]), output.ids[begin:end], finished=finished)
        chances = None if reader.hides else chat_logprobs(request, output, begin, end)
        show_ids = bool(body.get("return_token_ids")) and not reader.hides
        if delta is None:
            if not finished and chances is None and not show_ids:
                return
            delta = {}
        entry: dict[str, Any] = {"index": choice, "delta": delta, "logprobs": chances, "finish_reason": None}
        if finished:
            entry["finish_reason"] = reader.finish(output.finish, streamed=True)
            entry["stop_reason"] = output.stop_reason
        entry["token_ids"] = output.ids[begin:end] if show_ids else None
        more: dict[str, Any] = {}
        fingerprint = request.server.settings.fingerprint
        if finished and not self.include_usage and fingerprint is not None:
            more["system_fingerprint"] = fingerprint
        yield self._chunk(request.server.shapes.of("choice", **entry), end, **more)

    def quick(self, choice: int, begin: int, end: int) -> bytes | None:
        """The bytes of an ordinary chunk; None for requests whose chunks carry more than text."""
        if not self.plain:
            return None
        output, reader = self.outputs[choice], self.readers[choice]
        piece = output.pieces[begin] if end - begin == 1 else "".join(output.pieces[begin:end])
        if reader.active:
            delta = reader.feed(piece, output.ids[begin:end], finished=False)
            if delta is None:
                return b""
            if len(delta) > 1 or "tool_calls" in delta:
                return wire(self._chunk(self._text_choice(choice, delta), end))
            key, piece = next(iter(delta.items()))
        else:
            key = "content"
        parts = self._templates.get((choice, key))
        if parts is None:
            chunk = self._chunk(self._text_choice(choice, {key: _MARK}), end)
            parts = self._templates[(choice, key)] = template(chunk.data, _MARK)
        return parts[0] + quoted(piece) + parts[1]

    def _text_choice(self, choice: int, delta: dict[str, Any]) -> dict[str, Any]:
        entry = {"index": choice, "delta": delta, "logprobs": None, "finish_reason": None, "token_ids": None}
        return self.request.server.shapes.of("choice", **entry)

    def tail(self) -> Iterator[Event]:
        """The usage when asked for, and the end mark."""
        if self.include_usage:
            stream, request = self.stream, self.request
            cached = stream.cached if stream is not None else 0
            yield Event(
                without_null(
                    request.server.shapes.of(
                        "chunk",
                        id=request.id,
                        object="chat.completion.chunk",
                        created=request.created,
                        model=request.model,
                        choices=[],
                        usage=self.usage(sum(len(output.ids) for output in self.outputs), cached),
                        system_fingerprint=request.server.settings.fingerprint,
                    )
                )
            )
        yield Event(DONE)

    def failure(self, error: ApiError) -> list[Event]:
        """The stream breaks."""
        return broken(error, self.request.server)

    def message(self, output: Output) -> tuple[dict[str, Any], str]:
        """The message of a whole answer and its finish reason."""
        reader = MessageReader(self.request.server, self.request.body)
        message = reader.whole(output)
        if self.echoed:
            message["content"] = self.echoed + (message["content"] or "")
        self.reasoned.append(reader.reasoning_tokens)
        shaped = self.request.server.shapes.of("message", **{**message, "role": self.role})
        if self.request.server.settings.version >= "0.24.0" and not shaped["tool_calls"]:
            del shaped["tool_calls"]
        return shaped, reader.finish(output.finish, streamed=False)

    def usage(self, completion: int, cached: int) -> dict[str, Any]:
        """Token counts of all choices."""
        settings = self.request.server.settings
        details = bool(settings.args.get("enable_prompt_tokens_details"))
        reasoned = sum(self.reasoned) + sum(reader.reasoning_tokens for reader in self.readers)
        usage = self.request.server.shapes.usage(
            len(self.request.prompt),
            completion,
            cached=cached if details else None,
            reasoning=reasoned if settings.reasoning_parser else None,
            pictured=self.request.prompt.count(self.request.server.tokens.special_ids[PAD]),
        )
        written = (usage["prompt_tokens_details"] or {}).get("created_cache_tokens", 0)
        if written is None:
            usage["prompt_tokens_details"]["created_cache_tokens"] = self._written(cached)
        return usage

    def _written(self, cached: int) -> int:
        capacity = self.request.server.settings.capacity
        if not capacity.prefix_caching:
            return 0
        full = len(self.request.prompt) // capacity.block_size * capacity.block_size
        return max(0, full - cached)

    @property
    def role(self) -> str:
        """The role of the answer."""
        last = self.request.body["messages"][-1]
        if self.request.body.get("add_generation_prompt", True):
            return str(self.request.server.settings.args.get("response_role", "assistant"))
        return str(last.get("role"))

    @property
    def echoed(self) -> str:
        """The last message when it is to be repeated."""
        last = self.request.body["messages"][-1]
        if not self.request.body.get("echo") or last.get("role") != self.role:
            return ""
        content = last.get("content")
        return content if isinstance(content, str) else ""

    def _chunk(self, choice: dict[str, Any], count: int, **more: Any) -> Event:
        request = self.request
        data = {
            "id": request.id,
            "object": "chat.completion.chunk",
            "created": request.created,
            "model": request.model,
            "choices": [choice],
        }
        if self.each_usage:
            settings = request.server.settings
            reasoned = sum(reader.reasoning_tokens for reader in self.readers)
            data["usage"] = without_null(
                request.server.shapes.usage(
                    len(request.prompt), count, reasoning=reasoned if settings.reasoning_parser else None
                )
            )
        return Event(request.server.shapes.of("chunk", **data, **more))


def chat_logprobs(request: ChatRequest, output: Output, begin: int, end: int) -> dict[str, Any] | None:
    """Log probabilities of some of a choice's tokens; None when they were not asked for."""
    number = request.sampling.logprobs
    if number is None:
        return None
    tokens, sampling = request.server.tokens, request.sampling
    texts = tokens.pieces(output.ids[:end], skip_specials=False)
    wanted = tokens.size if number == -1 else number
    as_id = request.body.get("return_tokens_as_token_ids")
    as_id = request.server.settings.args.get("return_tokens_as_token_ids") if as_id is None else as_id
    content = []
    known, begins = behind(request.prompt, output.ids)
    for position in range(begin, end):
        found = logprobs(known, begins + position, wanted, tokens, request.server.settings)
        if sampling.logprob_token_ids:
            found |= {id_: (-12.5, 99) for id_ in sampling.logprob_token_ids if id_ not in found}
        chosen = output.ids[position]
        entries = []
        for id_, (chance, _) in list(found.items())[: None if sampling.logprob_token_ids else wanted]:
            text = texts[position] if id_ == chosen else _alone(tokens.token_text(id_))
            entries.append(_entry(f"token_id:{id_}" if as_id else text, text, chance))
        first = _entry(f"token_id:{chosen}" if as_id else texts[position], texts[position], found[chosen][0])
        content.append({**first, "top_logprobs": entries})
    return {"content": content}


def _alone(text: str) -> str:
    return "" if text.endswith("\ufffd") else text


def _entry(token: str, text: str, chance: float) -> dict[str, Any]:
    return {"token": token, "logprob": chance, "bytes": list(text.encode())}
