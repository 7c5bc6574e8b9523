"""Streams: the events of a generation, sent as its tokens come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pytest_vllm.sim.api.events import Event, wire
from pytest_vllm.sim.api.generate import DEAD, Generation
from pytest_vllm.sim.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.engine.sequence import Sequence
    from pytest_vllm.sim.generation import Output
    from pytest_vllm.sim.http.server import Call

EVENT_STREAM = ("content-type", "text/event-stream; charset=utf-8")


class Writer(Protocol):
    """Makes the events of one kind of stream."""

    def head(self) -> Iterable[Event]:
        """Events before the first token."""

    def advance(self, choice: int, begin: int, end: int) -> Iterable[Event]:
        """Events of tokens `begin` to `end` of a choice."""

    def quick(self, choice: int, begin: int, end: int) -> bytes | None:
        """The bytes of what `advance` gives before the last token; None when it must be asked instead."""

    def tail(self) -> Iterable[Event]:
        """Events after the last token of the last choice, the end mark included."""

    def failure(self, error: ApiError) -> Iterable[Event]:
        """Events of a stream that breaks."""


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
        self._quick = not (server.hooks.has("events") or self._framing)

    def expect(self, outputs: list[Output]) -> None:
        """These choices will come."""
        self.outputs = outputs
        self._given = [0] * len(outputs)

    def begin(self) -> None:
        """Send the response head."""
        server = self.server
        headers = [EVENT_STREAM, *server.extra_headers(self.call)]
        status = 200
        if server.hooks.has("head"):
            status, headers = server.hooks.run("head", (status, headers), server.exchange(self.call))
        self.call.start(status, headers)

    def refuse(self, error: ApiError) -> None:
        """End a stream that has begun with an error event."""
        self._send(self._spoiled(list(self.writer.failure(error))))
        self._end()

    def progressed(self, sequence: Sequence) -> None:
        """Send what the new tokens give."""
        if self._begun and self._quick and not sequence.ended and self._sent_quickly(sequence):
            return
        if self.call.gone or self.finished.done():
            return
        if sequence.error is not None:
            self.refuse(ApiError(DEAD, 500, "InternalServerError"))
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

    def _sent_quickly(self, sequence: Sequence) -> bool:
        given = self._given
        number = self.sequences.index(sequence) if len(given) > 1 else 0
        begin, end = given[number], sequence.done
        if self._interval > 1 or end >= len(sequence.output):
            return False
        data = self.writer.quick(number, begin, end)
        if data is None:
            self._quick = False
            return False
        given[number] = end
        if data:
            self.call.raw(b"%x\r\n%b\r\n" % (len(data), data))
        return True

    def _close(self) -> None:
        if self._ready is None:
            self._send(self.writer.tail())
        else:
            self._send(self._ready)
            self._ready = []
        self._end()

    def _end(self) -> None:
        hooks = self.server.hooks
        how = hooks.run("close", "end", self.server.exchange(self.call)) if hooks.has("close") else "end"
        if how == "end":
            self.call.end()
        elif how == "cut":
            self.call.drop()
        self._done()

    def _send(self, events: Iterable[Event]) -> None:
        texts = [wire(event) for event in events]
        if self._framing:
            exchange = self.server.exchange(self.call)
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
        spoiled: list[Event] = self.server.hooks.run("events", events, self.server.exchange(self.call))
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
