"""What chat, completions, responses and messages share: model check, engine hand-over, streaming, waiting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from pytest_vllm.sim.api.events import DONE, Event, wire
from pytest_vllm.sim.engine.core import EngineDead
from pytest_vllm.sim.engine.sequence import Sequence
from pytest_vllm.sim.errors import ApiError, envelope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.check.sampling import Sampling
    from pytest_vllm.sim.generation import Output
    from pytest_vllm.sim.http.server import Call

EVENT_STREAM = ("content-type", "text/event-stream; charset=utf-8")
_DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."


def check_model(server: Server, body: dict[str, Any]) -> str:
    """The name that the answer carries. Raises ApiError for a model that is not served."""
    settings, wanted = server.settings, body.get("model")
    if not wanted or wanted in settings.names:
        return settings.name
    if wanted in server.loras:
        return str(wanted)
    text = f"The model `{wanted}` does not exist."
    if settings.version >= "0.32.0":
        text += f" Valid aliases: {', '.join(settings.names)}."
    param = "model" if settings.version >= "0.13.0" else None
    raise ApiError(text, 404, "NotFoundError", param)


def check_alive(server: Server) -> None:
    """Refuse when the engine is dead."""
    if server.engine.dead:
        raise ApiError(_DEAD, 500, "InternalServerError")


class Writer(Protocol):
    """Makes the events of one kind of stream."""

    def head(self) -> Iterable[Event]:
        """Events before the first token."""

    def advance(self, choice: int, begin: int, end: int) -> Iterable[Event]:
        """Events of tokens `begin` to `end` of a choice."""

    def tail(self) -> Iterable[Event]:
        """Events after the last token of the last choice, the end mark included."""

    def failure(self, error: ApiError) -> Iterable[Event]:
        """Events of a stream that breaks."""


class Generation:
    """The sequences of one request in the engine, and who listens to them."""

    def __init__(self, server: Server, call: Call, outputs: list[Output]) -> None:
        """One sequence per choice and prompt; `submit` hands them over."""
        self.server, self.call, self.outputs = server, call, outputs
        self.sequences: list[Sequence] = []
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.open = 0
        self.n = 1

    def add(
        self, request_id: str, prompt: list[int], output: Output, sampling: Sampling, body: dict[str, Any]
    ) -> None:
        """Prepare the sequence of one choice."""
        server = self.server
        lora = body.get("model") if body.get("model") in server.loras else None
        sequence = Sequence(
            id=request_id,
            prompt=prompt,
            output=output.ids,
            finish=output.finish,
            listener=self,
            salt=(body.get("cache_salt"), lora),
            priority=body.get("priority") or 0,
            arrived=server.clock.now(),
            skip_cache=sampling.prompt_logprobs is not None,
            max_tokens=sampling.max_tokens,
        )
        self.sequences.append(sequence)

    def submit(self, n: int) -> None:
        """Hand all sequences to the engine. Raises ApiError when it is dead."""
        self.n = n
        self.open = len(self.sequences)
        self.call.on_gone.append(self.abort)
        try:
            for sequence in self.sequences:
                self.server.engine.submit(sequence)
        except EngineDead:
            raise ApiError(_DEAD, 500, "InternalServerError") from None

    def abort(self) -> None:
        """The client left."""
        for sequence in self.sequences:
            self.server.engine.abort(sequence)
        self._done()

    def progressed(self, sequence: Sequence) -> None:
        """Count sequences that ended; wake whoever waits for all."""
        if sequence.ended:
            self.open -= 1
            if sequence.error is not None and not self.finished.done():
                self.finished.set_exception(ApiError(_DEAD, 500, "InternalServerError"))
            elif self.open <= 0:
                self._done()

    def _done(self) -> None:
        if not self.finished.done():
            self.finished.set_result(None)
            self._count()
            self.server.generations += 1
            self.server.hooks.run("finished", self.server.generations, self.server)

    def _count(self) -> None:
        stats = self.server.engine.stats
        for number in range(0, len(self.sequences), self.n):
            group = self.sequences[number : number + self.n]
            if all(sequence.ended and sequence.ended != "abort" for sequence in group):
                stats.observe("request_params_n", self.n)
                stats.observe("request_max_num_generation_tokens", max(sequence.done for sequence in group))

    @property
    def cached(self) -> int:
        """Prompt tokens that the first sequence found in the cache."""
        return max(0, self.sequences[0].cached) if self.sequences else 0


class Stream(Generation):
    """A generation whose tokens are sent as they come."""

    writer: Writer

    def __init__(self, server: Server, call: Call, outputs: list[Output], body: dict[str, Any]) -> None:
        """Send to `call`."""
        super().__init__(server, call, outputs)
        self.body = body
        self._begun = False
        self._interval = max(body.get("stream_interval") or 1, server.settings.args.get("stream_interval", 1))
        self._framing = server.hooks.has("chunk")
        self._given = [0] * len(outputs)
        self._ready: list[Event] | None = None

    def expect(self, outputs: list[Output]) -> None:
        """These choices will come."""
        self.outputs = outputs
        self._given = [0] * len(outputs)

    def begin(self) -> None:
        """Send the response head."""
        server = self.server
        headers = [EVENT_STREAM, *server.extra_headers(self.call)]
        status, headers = server.hooks.run("head", (200, headers), server.exchange(self.call, self.body))
        self.call.start(status, headers)

    def refuse(self, error: ApiError) -> None:
        """End a stream that has begun with an error event."""
        self._send(self._spoiled(list(self.writer.failure(error))))
        self.call.end()
        self._done()

    def progressed(self, sequence: Sequence) -> None:
        """Send what the new tokens give."""
        if self.call.gone or self.finished.done():
            return
        if sequence.error is not None:
            self.refuse(ApiError(_DEAD, 500, "InternalServerError"))
            return
        number = self.sequences.index(sequence) if len(self.sequences) > 1 else 0
        waiting = sequence.done - self._given[number]
        if self._begun and waiting < self._interval and not sequence.ended and self._given[number]:
            return
        if not self._begun:
            self._begun = True
            if self.server.hooks.has("events"):
                self._ready = self._spoiled(self._all())
            else:
                self._send(self.writer.head())
        begin, self._given[number] = self._given[number], sequence.done
        if self._ready is None:
            self._send(self.writer.advance(number, begin, sequence.done))
        else:
            self._release()
        if sequence.ended:
            self.open -= 1
            if self.open <= 0:
                self._close()

    def _close(self) -> None:
        if self._ready is None:
            self._send(self.writer.tail())
        else:
            self._send(self._ready)
            self._ready = []
        self.call.end()
        self._done()

    def _send(self, events: Iterable[Event]) -> None:
        texts = [wire(event) for event in events]
        if self._framing:
            exchange = self.server.exchange(self.call, self.body)
            texts = [
                text for text in (self.server.hooks.run("chunk", text, exchange) for text in texts) if text
            ]
        if texts:
            self.call.raw(b"".join([b"%x\r\n%b\r\n" % (len(text), text) for text in texts]))

    def _all(self) -> list[Event]:
        events = list(self.writer.head())
        at = [0] * len(self.sequences)
        while any(at[i] < len(sequence.output) for i, sequence in enumerate(self.sequences)):
            for number, sequence in enumerate(self.sequences):
                step = self._interval if at[number] else 1
                end = min(at[number] + step, len(sequence.output))
                if end > at[number]:
                    for event in self.writer.advance(number, at[number], end):
                        event.choice, event.at = number, end
                        events.append(event)
                    at[number] = end
        last = len(self.sequences) - 1
        for event in self.writer.tail():
            event.choice, event.at = last, len(self.sequences[last].output)
            events.append(event)
        return events

    def _spoiled(self, events: list[Event]) -> list[Event]:
        spoiled: list[Event] = self.server.hooks.run(
            "events", events, self.server.exchange(self.call, self.body)
        )
        return spoiled

    def _release(self) -> None:
        assert self._ready is not None  # noqa: S101 - the caller looked
        count = 0
        for event in self._ready:
            if event.at > self._given[event.choice] or (event.is_done and self.open > 1):
                break
            count += 1
        self._send(self._ready[:count])
        del self._ready[:count]


def broken(error: ApiError, server: Server) -> list[Event]:
    """An OpenAI-style stream that breaks: the error object, then the end mark."""
    return [Event(envelope(error, server.settings.version)), Event(DONE)]
