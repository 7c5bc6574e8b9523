"""What stands between a client and a healthy server: proxies and balancers, each right in its way.

`between("nginx", urls)` listens in a thread of this process and gives the requests on. One row is one kind.
"""

from __future__ import annotations

import asyncio
import gzip
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from tests.defects.passing import Head, body_of, dressed, later, read_head

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence

#: What stands in the page of an error that is the proxy's own.
PAGE = "<html>\r\n<head><title>{0}</title></head>\n<body><center><h1>{0}</h1></center></body>\n</html>\n"
#: Seconds between two looks at whether the client has left.
GLANCE = 0.05
Got = TypeVar("Got")
NO_PATHS: tuple[str, ...] = ()


@dataclass(frozen=True)
class Middleman:
    """How one behaves.

    Args:
        adds: headers that every answer gets.
        titled: whether the names of headers are written in title case.
        prefix: the path under which the server is found.
        hides: paths, with those below them, that it answers itself.
        shows: the only paths that it gives on; empty for all.
        hidden: the status of what is hidden.
        recut: bytes of a chunk where a body begins; 0 leaves chunks as they come.
        gathers: seconds for which pieces of a stream are gathered.
        comments: whether a stream holds comments.
        gzips: the least size of a body that is compressed for clients that take it; 0 for none.
        most: requests on a connection, the last of which is told so; 0 for any number.
        idle: seconds after which an idle connection is closed without a word; 0 for never.
        rate: requests a second, with as many at once; 0 for any number.
        excess: the status and reason of what is above the rate.
        largest: bytes of a request's body; 0 for any number.
        head: bytes of a request's head; 0 for any number.
        names: whether requests get an id of its own.
        plain: whether it speaks HTTP/1.0.
        hints: whether an interim answer comes first.
        kinds: content types as it spells them.
        far: seconds that everything takes on its way.
        options: whether it answers OPTIONS itself.
        sticky: whether all requests of a connection go to one server.
        replicas: how many servers are behind it.
    """

    adds: Mapping[str, str] = field(default_factory=dict)
    titled: bool = False
    prefix: str = ""
    hides: tuple[str, ...] = NO_PATHS
    shows: tuple[str, ...] = NO_PATHS
    hidden: str = "404 Not Found"
    recut: int = 0
    gathers: float = 0.0
    comments: bool = False
    gzips: int = 0
    most: int = 0
    idle: float = 0.0
    rate: float = 0.0
    excess: str = "429 Too Many Requests"
    largest: int = 0
    head: int = 0
    names: bool = False
    plain: bool = False
    hints: bool = False
    kinds: Mapping[str, str] = field(default_factory=dict)
    far: float = 0.0
    options: bool = False
    sticky: bool = False
    replicas: int = 1


NGINX = {"Server": "nginx/1.27.4"}
ENVOY = {"server": "envoy", "x-envoy-upstream-service-time": "12"}
EDGE = {
    "Via": "1.1 Caddy",
    "Alt-Svc": 'h3=":443"; ma=2592000',
    "Strict-Transport-Security": "max-age=31536000; includeSubDomains",
    "Set-Cookie": "lb=a1b2; Path=/; HttpOnly; Secure",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Server-Timing": "proxy;dur=3",
}
#: Bytes that are cut finely, of those that come together: cutting a long body so takes seconds.
FINE = 4096
#: Every kind by its name.
MIDDLEMEN = {
    "nginx": Middleman(adds=NGINX, titled=True),
    "recuts": Middleman(adds=ENVOY, recut=7),
    "gathers": Middleman(adds=ENVOY, gathers=0.03),
    "gzips": Middleman(adds=NGINX, gzips=256),
    "keeps-few": Middleman(adds=NGINX, most=5),
    "closes": Middleman(adds=NGINX, most=1),
    "idles-shortly": Middleman(adds=NGINX, idle=1.0),
    "limits-429": Middleman(adds=NGINX, rate=40.0),
    "limits-503": Middleman(adds=NGINX, rate=40.0, excess="503 Service Temporarily Unavailable"),
    "takes-1m": Middleman(adds=NGINX, largest=1 << 20),
    "takes-32k": Middleman(adds=NGINX, largest=1 << 15),
    "names-requests": Middleman(adds=ENVOY, names=True),
    "hides-metrics": Middleman(adds=NGINX, hides=("/metrics",)),
    "forbids-metrics": Middleman(adds=NGINX, hides=("/metrics",), hidden="403 Forbidden"),
    "hides-version": Middleman(adds=NGINX, hides=("/version",)),
    "hides-health": Middleman(adds=NGINX, hides=("/health", "/ping")),
    "shows-v1": Middleman(adds=NGINX, shows=("/v1",)),
    "hides-tokens": Middleman(adds=NGINX, hides=("/tokenize", "/detokenize")),
    "hides-docs": Middleman(adds=NGINX, hides=("/openapi.json", "/docs", "/redoc")),
    "under-a-path": Middleman(adds=NGINX, prefix="/team/llm"),
    "edge": Middleman(adds=EDGE, titled=True),
    "http-1.0": Middleman(adds=NGINX, plain=True),
    "hints": Middleman(adds=ENVOY, hints=True),
    "comments": Middleman(adds=ENVOY, comments=True),
    "spells-types": Middleman(
        kinds={
            "application/json": "application/json; charset=utf-8",
            "text/event-stream; charset=utf-8": "text/event-stream",
        }
    ),
    "far": Middleman(adds=ENVOY, far=0.12),
    "balances": Middleman(adds=NGINX, replicas=2),
    "balances-connections": Middleman(adds=NGINX, replicas=2, sticky=True),
    "answers-options": Middleman(adds=NGINX, options=True),
    "short-heads": Middleman(adds=NGINX, head=1 << 13),
}


@contextmanager
def between(name: str, urls: Sequence[str]) -> Iterator[str]:
    """The URL of a middleman of that kind in front of these servers, while the block runs."""
    loop = asyncio.new_event_loop()
    standing = _Standing(MIDDLEMEN[name], urls)
    thread = threading.Thread(target=loop.run_forever, name=f"middleman {name}", daemon=True)
    thread.start()
    try:
        port = asyncio.run_coroutine_threadsafe(standing.up(), loop).result(10)
        yield f"http://127.0.0.1:{port}{standing.kind.prefix}"
    finally:
        asyncio.run_coroutine_threadsafe(standing.down(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


class _Standing:
    """One middleman at work."""

    def __init__(self, kind: Middleman, urls: Sequence[str]) -> None:
        self.kind = kind
        self._servers = [(str(url.hostname), int(url.port or 80)) for url in map(urlsplit, urls)]
        self._turns = count()
        self._left, self._seen = kind.rate, monotonic()
        self._tasks: set[asyncio.Task[None]] = set()

    async def up(self) -> int:
        """Listen; the port."""
        self._listening = await asyncio.start_server(self._take, "127.0.0.1", 0)
        port: int = self._listening.sockets[0].getsockname()[1]
        return port

    async def down(self) -> None:
        """End with all connections."""
        self._listening.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _take(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        turn = next(self._turns)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, TimeoutError):
            for number in count(1):
                asked = await asyncio.wait_for(
                    read_head(reader), self.kind.idle if number > 1 and self.kind.idle else None
                )
                if asked is None or not await self._one(asked, number, turn, reader, writer):
                    break
        self._tasks.discard(task)
        writer.close()

    async def _one(
        self, asked: Head, number: int, turn: int, reader: StreamReader, writer: StreamWriter
    ) -> bool:
        """Serve one request; whether the connection goes on."""
        kind = self.kind
        body = b"".join([part async for part in body_of(asked, reader, request=True)])
        last = kind.plain or number == kind.most or asked.get("connection").lower() == "close"
        await asyncio.sleep(kind.far)
        own = self._own(asked, body)
        if own:
            page = PAGE.format(own).encode() * (asked.method != "HEAD")
            fields = [("Content-Type", "text/html"), ("Content-Length", str(len(page)))]
            fields += [("Retry-After", "1")] * own.startswith("429")
            writer.write(self._head(own, fields, last=last) + page)
            await writer.drain()
            return not last
        host, port = self._servers[(turn if kind.sticky else next(self._turns)) % len(self._servers)]
        upstream, sender = await asyncio.open_connection(host, port)
        try:
            path = asked.target.removeprefix(kind.prefix) or "/"
            name = f"edge-{next(self._turns):08x}" if self.kind.names else ""
            sender.write(dressed(asked, path, body, name))
            await sender.drain()
            return await self._back(asked, upstream, reader, writer, last=last, name=name)
        finally:
            sender.close()

    def _own(self, asked: Head, body: bytes) -> str:
        """The status that it answers with itself; empty for what it gives on."""
        kind, path = self.kind, asked.target.partition("?")[0]
        if kind.rate:
            now = monotonic()
            self._left, self._seen = min(kind.rate, self._left + (now - self._seen) * kind.rate), now
            if self._left < 1:
                return kind.excess
            self._left -= 1
        if not path.startswith(kind.prefix):
            return "404 Not Found"
        path = path.removeprefix(kind.prefix)
        under = [one for one in kind.hides if path == one or path.startswith(f"{one}/")]
        if under or (kind.shows and not path.startswith(kind.shows)):
            return kind.hidden
        if kind.options and asked.method == "OPTIONS":
            return "204 No Content"
        if kind.head and asked.size > kind.head:
            return "400 Request Header Or Cookie Too Large"
        return "413 Request Entity Too Large" if kind.largest and len(body) > kind.largest else ""

    def _head(self, status: str, fields: Sequence[tuple[str, str]], *, last: bool) -> bytes:
        added = {name.lower() for name in self.kind.adds}
        kept = [
            (name, self.kind.kinds.get(value, value)) for name, value in fields if name.lower() not in added
        ]
        kept += [*self.kind.adds.items(), ("Connection", "close" if last else "keep-alive")]
        lines = [f"{name.title() if self.kind.titled else name}: {value}\r\n" for name, value in kept]
        version = "1.0" if self.kind.plain else "1.1"
        return f"HTTP/{version} {status}\r\n{''.join(lines)}\r\n".encode("latin-1")

    async def _back(
        self,
        asked: Head,
        upstream: StreamReader,
        reader: StreamReader,
        writer: StreamWriter,
        *,
        last: bool,
        name: str,
    ) -> bool:
        kind = self.kind
        answer = await _unless_left(read_head(upstream), reader)
        if answer is None:
            return False
        parts = body_of(answer, upstream)
        if kind.far:
            parts = later(parts, kind.far)
            await asyncio.sleep(kind.far)
        empty = asked.method == "HEAD" or answer.status[:3] in ("204", "304")
        streams = "event-stream" in answer.get("content-type")
        known = int(answer.get("content-length") or -1)
        fields = answer.fields("connection", "transfer-encoding", "content-length", "keep-alive")
        if name:
            fields = [pair for pair in fields if pair[0].lower() != "x-request-id"] + [("x-request-id", name)]
        if kind.gzips and "gzip" in asked.get("accept-encoding") and known >= kind.gzips and not empty:
            whole = gzip.compress(b"".join([part async for part in parts]))
            fields += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
            known, parts = len(whole), _only(whole)
        chunked = not kind.plain and not empty and (known < 0 or kind.recut > 0)
        if chunked:
            fields.append(("Transfer-Encoding", "chunked"))
        elif known >= 0:
            fields.append(("Content-Length", str(known)))
        hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n" if kind.hints else b""
        writer.write(hint + self._head(answer.status, fields, last=last))
        if not empty:
            async for part in self._pieces(parts, reader, streams=streams):
                writer.write(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
                await writer.drain()
            writer.write(b"0\r\n\r\n" * chunked)
        await writer.drain()
        return not last

    async def _pieces(
        self, parts: AsyncIterator[bytes], reader: StreamReader, *, streams: bool
    ) -> AsyncIterator[bytes]:
        """A body in the pieces in which it goes out."""
        kind, held, since = self.kind, b"", monotonic()
        while part := await _unless_left(anext(parts, b""), reader):
            if streams and kind.comments and part.endswith(b"\n\n"):
                part += b": keep-alive\n\n"
            held += part
            if streams and kind.gathers and monotonic() - since < kind.gathers:
                continue
            size = kind.recut or len(held)
            begun, rest = (held[:FINE], held[FINE:]) if kind.recut else (held, b"")
            for start in range(0, len(begun), size):
                yield begun[start : start + size]
            if rest:
                yield rest
            held, since = b"", monotonic()
        if held:
            yield held


async def _only(whole: bytes) -> AsyncIterator[bytes]:
    yield whole


async def _unless_left(wanted: Awaitable[Got], reader: StreamReader) -> Got:
    """What comes of it. Raises ConnectionResetError once the client has left."""
    task: asyncio.Task[Got] = asyncio.ensure_future(wanted)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=GLANCE)
            if reader.at_eof() and not task.done():
                raise ConnectionResetError("the client left")
        return task.result()
    finally:
        task.cancel()
