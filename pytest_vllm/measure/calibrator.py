"""A server that computes nothing: streams of events at known moments, to test a client with.

    python -m pytest_vllm.measure.calibrator --first 0.05 --gap 0.01 --events 200

Answers any POST with a stream of completion chunks, the first after `first` seconds, the others `gap` seconds
apart, each in a write of its own; `GET /truth` tells when each request came in and when its events went
out, by CLOCK_MONOTONIC. Prints its port.
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
_ROLE = {"role": "assistant", "content": ""}


@dataclass(eq=False)
class Stream:
    """One answer: when its request came in, what is still to be written, when events went out."""

    number: int
    socket: socket.socket
    arrived: float
    left: int
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
        self._event = _framed(_chunk({"content": " word"}))
        self._last = (
            _framed(_chunk({}, "length")) + _framed(_usage(events)) + _framed("[DONE]") + b"0\r\n\r\n"
        )
        self._role = _framed(_chunk(_ROLE))

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
        if not request.startswith(b"POST"):
            body = self._truth() if b"/truth" in request[:64] else b"{}"
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            sock.setblocking(True)
            sock.sendall(head % len(body) + body)
            sock.setblocking(False)
            return
        stream = Stream(len(self._streams), sock, arrived, self.events)
        self._streams.append(stream)
        sock.send(_HEAD % stream.number + self._role)
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
                stream.socket.send(self._event if stream.left else self._event + self._last)
            except BlockingIOError:  # nobody reads: try again later
                stream.left += 1
                self._going.append((now + max(self.gap, 0.001), stream))
                continue
            except OSError:
                continue
            stream.written.append(now)
            if stream.left:
                self._going.append((due + self.gap, stream))

    def _truth(self) -> bytes:
        rows = [{"arrived": one.arrived, "written": list(one.written)} for one in self._streams]
        self._streams = []
        return json.dumps(rows).encode()


def _framed(data: str) -> bytes:
    event = f"data: {data}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(event), event)


def _chunk(delta: dict[str, str], finish: str | None = None) -> str:
    text = delta.get("content", "")
    choice = {"index": 0, "delta": delta, "text": text, "logprobs": None, "finish_reason": finish}
    return json.dumps(
        {
            "id": "chatcmpl-8f0c1d2e3f405162a7b8c9d0e1f20314",
            "object": "chat.completion.chunk",
            "created": 1_790_000_000,
            "model": "calibrator",
            "choices": [choice],
        }
    )


def _usage(events: int) -> str:
    usage = {"prompt_tokens": 8, "completion_tokens": events, "total_tokens": events + 8}
    return json.dumps({**json.loads(_chunk({})), "choices": [], "usage": usage})


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        if line[:15].lower() == b"content-length:":
            return int(line[15:])
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(prog="python -m pytest_vllm.measure.calibrator", description=__doc__)
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
