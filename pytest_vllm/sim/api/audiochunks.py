"""The events of a transcription that is streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.events import DONE, Event
from pytest_vllm.sim.api.generate import broken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.sim.api.audio import AudioRequest
    from pytest_vllm.sim.errors import ApiError
    from pytest_vllm.sim.generation import Output

Body = dict[str, Any]


class AudioChunks:
    """Makes `transcription.chunk` or `translation.chunk` events."""

    def __init__(self, request: AudioRequest, output: Output) -> None:
        """For one request."""
        self.request, self.output = request, output
        body, forced = request.body, request.server.settings.args.get("enable_force_include_usage")
        self.counts = bool(forced or body.get("stream_include_usage"))
        self.counts_each = self.counts and bool(body.get("stream_continuous_usage_stats"))

    def head(self) -> Iterator[Event]:
        """Nothing comes before the first token."""
        return iter(())

    def advance(self, choice: int, begin: int, end: int) -> Iterator[Event]:
        """A chunk per group of tokens that shows any text, and the last."""
        del choice
        text, last = "".join(self.output.pieces[begin:end]), end >= len(self.output.ids)
        if not (text or last):
            return
        entry: Body = {"delta": {"content": text}}
        if last:
            entry |= {"finish_reason": self.output.finish, "stop_reason": self.output.stop_reason}
        yield Event(self._chunk([entry], end if self.counts_each else None))

    def quick(self, choice: int, begin: int, end: int) -> bytes | None:
        """There are few tokens."""
        del choice, begin, end
        return None

    def tail(self) -> Iterator[Event]:
        """The usage when asked for, and the end mark."""
        if self.counts:
            yield Event(self._chunk([], len(self.output.ids)))
        yield Event(DONE)

    def failure(self, error: ApiError) -> list[Event]:
        """The stream breaks."""
        return broken(error, self.request.server)

    def _chunk(self, choices: list[Body], counted: int | None) -> Body:
        request = self.request
        kind = "transcription.chunk" if request.task == "transcribe" else "translation.chunk"
        chunk = {
            "id": request.id,
            "object": kind,
            "created": request.created,
            "model": request.model,
            "choices": choices,
        }
        if counted is None:
            return chunk
        prompt = len(request.prompt)
        usage = {"prompt_tokens": prompt, "total_tokens": prompt + counted, "completion_tokens": counted}
        return {**chunk, "usage": usage}
