"""A server that computes nothing: streams of events at known moments, to test a client with.

    python -m tools.calibrator --first 0.05 --gap 0.01 --events 200

Answers any POST with a stream of chunks, those of chat completions where its path says chat (the role comes
at once), else of completions: the first word after `first` seconds, the others `gap` seconds apart, each in a
write of its own. `GET /v1/models` names the one model, since some clients ask; `GET /truth` tells when each
request came in and when its words went out, by CLOCK_MONOTONIC. Prints its port.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import struct
import sys
import time
from array import array
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_STAMPS = 35 if sys.platform == "linux" else None  # SO_TIMESTAMPNS
_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nx-stream: %d\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_MODEL = "calibrator"
_MODELS = {"object": "list", "data": [{"id": _MODEL, "object": "model", "owned_by": "calibrator"}]}


@dataclass(frozen=True)
class Said:
    """The bytes of an answer: what comes with its head, every word but the last, and from that to the end."""

    opening: bytes
    word: bytes
    last: bytes

    @classmethod
    def of(cls, events: int, *, chat: bool) -> Said:
        """What an endpoint says, in the shape that vLLM gives it: the last word tells why it is the last."""
        opening = _framed(_chunk({"role": "assistant", "content": ""})) if chat else b""
        word = {"content": " word"} if chat else " word"
        closing = _framed(_usage(events, chat=chat)) + _framed("[DONE]") + b"0\r\n\r\n"
        return cls(opening, _framed(_chunk(word)), _framed(_chunk(word, "length")) + closing)


@dataclass(eq=False)
class Stream:
    """One answer: when its request came in, what is still to be written, when events went out."""

    number: int
    socket: socket.socket
    arrived: float
    left: int
    said: Said
    written: array[float] = field(default_factory=lambda: array("d"))


class Calibrator:
    """The server.

    Args:
        first: seconds from a request's arrival to its first event.
        gap: seconds between two events; 0: as fast as they are taken.
        events: of every answer.
        port: to listen at on the loopback; 0: any.
    """

    def __init__(self, first: float, gap: float, events: int, port: int = 0) -> None:
        """Listening."""
        self.first, self.gap, self.events = first, gap, events
        self._listener = socket.create_server(("127.0.0.1", port), backlog=4096)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._buffers: dict[int, bytes] = {}
        self._starting: deque[tuple[float, Stream]] = deque()
        self._going: deque[tuple[float, Stream]] = deque()
        self._streams: list[Stream] = []
        self._chat, self._completion = (Said.of(events, chat=chat) for chat in (True, False))

    def serve(self) -> None:
        """Serve for ever."""
        while True:
            now = time.monotonic()
            due = min((queue[0][0] for queue in (self._starting, self._going) if queue), default=now + 0.2)
            wait = due - now
            if 0 < wait < 0.001:
                time.sleep(wait)  # finer than the selector can wait
                wait = 0.0
            for key, _ in self._selector.select(max(0.0, wait - 0.001) if wait > 0 else 0):
                if key.data is None:
                    self._accept()
                else:
                    self._read(key.data)
            self._write_due(self._starting)
            self._write_due(self._going)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if _STAMPS is not None:
                sock.setsockopt(socket.SOL_SOCKET, _STAMPS, 1)
            self._selector.register(sock, selectors.EVENT_READ, sock)
            self._buffers[sock.fileno()] = b""

    def _read(self, sock: socket.socket) -> None:
        try:
            data, told, _, _ = sock.recvmsg(65_536, 64)
        except BlockingIOError:
            return
        except OSError:
            data, told = b"", []
        now = time.monotonic()
        if not data:
            self._selector.unregister(sock)
            del self._buffers[sock.fileno()]
            sock.close()
            return
        text = self._buffers[sock.fileno()] + data
        end = text.find(b"\r\n\r\n")
        length = _length(text[:end]) if end >= 0 else 0
        if end < 0 or len(text) < end + 4 + length:
            self._buffers[sock.fileno()] = text
            return
        self._buffers[sock.fileno()] = b""
        if told:
            seconds, nanos = struct.unpack("qq", told[0][2])
            now = min(now, now - (time.time() - seconds - nanos * 1e-9))
        self._answer(sock, text, now)

    def _answer(self, sock: socket.socket, request: bytes, arrived: float) -> None:
        method, path, _ = request.split(b" ", 2)
        if method != b"POST":
            body = self._told(path)
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            sock.setblocking(True)
            sock.sendall(head % len(body) + body)
            sock.setblocking(False)
            return
        said = self._chat if b"/chat/" in path else self._completion
        stream = Stream(len(self._streams), sock, arrived, self.events, said)
        self._streams.append(stream)
        sock.send(_HEAD % stream.number + said.opening)
        self._starting.append((arrived + self.first, stream))

    def _write_due(self, queue: deque[tuple[float, Stream]]) -> None:
        now = time.monotonic()
        for _ in range(len(queue)):
            if queue[0][0] > now:
                return
            due, stream = queue.popleft()
            stream.left -= 1
            now = time.monotonic()
            try:
                stream.socket.send(stream.said.word if stream.left else stream.said.last)
            except BlockingIOError:  # nobody reads: try again later
                stream.left += 1
                self._going.append((now + max(self.gap, 0.001), stream))
                continue
            except OSError:
                continue
            stream.written.append(now)
            if stream.left:
                self._going.append((due + self.gap, stream))

    def _told(self, path: bytes) -> bytes:
        if path == b"/v1/models":
            return json.dumps(_MODELS).encode()
        if path != b"/truth":
            return b"{}"
        rows = [{"arrived": one.arrived, "written": list(one.written)} for one in self._streams]
        self._streams = []
        return json.dumps(rows).encode()


def _framed(data: str) -> bytes:
    event = f"data: {data}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(event), event)


def _chunk(said: dict[str, str] | str, finish: str | None = None) -> str:
    """A chunk of chat completions for a delta, one of completions for a text."""
    chat = isinstance(said, dict)
    choice = {"index": 0, "delta" if chat else "text": said, "logprobs": None, "finish_reason": finish}
    return json.dumps({**_envelope(chat=chat), "choices": [choice]})


def _usage(events: int, *, chat: bool) -> str:
    usage = {"prompt_tokens": 8, "completion_tokens": events, "total_tokens": events + 8}
    return json.dumps({**_envelope(chat=chat), "choices": [], "usage": usage})


def _envelope(*, chat: bool) -> dict[str, object]:
    return {
        "id": f"{'chatcmpl' if chat else 'cmpl'}-8f0c1d2e3f405162a7b8c9d0e1f20314",
        "object": "chat.completion.chunk" if chat else "text_completion",
        "created": 1_790_000_000,
        "model": _MODEL,
    }


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        if line[:15].lower() == b"content-length:":
            return int(line[15:])
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(prog="python -m tools.calibrator", description=__doc__)
    parser.add_argument("--first", type=float, default=0.05)
    parser.add_argument("--gap", type=float, default=0.01)
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args(argv)
    server = Calibrator(options.first, options.gap, options.events, options.port)
    print(server.port, flush=True)
    try:
        server.serve()
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
