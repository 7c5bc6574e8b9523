"""What an own test sends to the server and gets back, kept until the test has ended: evidence if it fails.

Built on the event hooks of httpx and of the client library that newer versions of openai bring, which are
alike; the bytes pass unchanged.
"""

from __future__ import annotations

import json
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_vllm.wire.recording import Recording, Request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from types import ModuleType

#: Exchanges of one test that are kept, the last ones, and bytes of a body that are.
MOST, MOST_BYTES = 20, 1_000_000
#: Where a request carries its flight.
CARRIED = "pytest_vllm_flight"


@dataclass
class Flight:
    """One exchange while it happens."""

    request: Request
    sent: float = field(default_factory=time.time)
    clock: float = field(default_factory=time.monotonic)
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    headers_at: float | None = None
    chunks: list[tuple[float, bytes]] = field(default_factory=list)
    size: int = 0
    error: str = ""
    ended: float | None = None

    @property
    def at(self) -> float:
        """Seconds since it was sent."""
        return time.monotonic() - self.clock

    def add(self, chunk: bytes) -> None:
        """Keep what was read."""
        if self.size < MOST_BYTES:
            self.chunks.append((self.at, chunk))
        self.size += len(chunk)

    @contextmanager
    def read(self) -> Iterator[None]:
        """Its body is read in this block: how that went wrong, and when it ended."""
        try:
            yield
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            self.ended = self.at

    def recording(self, number: int) -> Recording:
        """As reports show exchanges."""
        waits = "" if self.status is not None else "no response arrived"
        return Recording(
            key=f"{self.request.method} {self.request.path} #{number}",
            request=self.request,
            status=self.status,
            headers=self.headers,
            chunks=tuple(self.chunks),
            sent=self.sent,
            headers_at=self.headers_at,
            seconds=self.ended if self.ended is not None else self.at,
            error=self.error or waits,
        )


class Traffic:
    """The exchanges of the test that runs now."""

    def __init__(self) -> None:
        """Nothing was sent."""
        self._flights: deque[Flight] = deque(maxlen=MOST)

    def clear(self) -> None:
        """Begin with the next test."""
        self._flights.clear()

    def recordings(self) -> list[Recording]:
        """What was sent and came back, in order."""
        return [flight.recording(number) for number, flight in enumerate(self._flights, 1)]

    def hooks(self, library: ModuleType, *, later: bool) -> dict[str, list[Any]]:
        """Event hooks of a client.

        Args:
            library: whose client it is.
            later: whether it is an asynchronous one.
        """
        if not later:
            return {"request": [self._sends], "response": [lambda response: _tees(library, response)]}

        async def sends(request: Any) -> None:
            self._sends(request)

        async def arrives(response: Any) -> None:
            _tees(library, response, later=True)

        return {"request": [sends], "response": [arrives]}

    def _sends(self, request: Any) -> None:
        flight = Flight(_request(request))
        request.extensions[CARRIED] = flight
        self._flights.append(flight)


def _request(request: Any) -> Request:
    path = request.url.raw_path.decode("ascii", "replace")
    try:
        content: bytes = request.content
    except Exception:  # noqa: BLE001 - a stream that was not read: each library has its own error
        return Request(request.method, path, content="(a stream)")
    try:
        return Request(request.method, path, json=json.loads(content) if content else None)
    except ValueError:
        return Request(request.method, path, content=content.decode("utf-8", "replace"))


def _tees(library: Any, response: Any, *, later: bool = False) -> None:
    """Let the flight of a response see what is read of it."""
    flight = response.request.extensions.get(CARRIED)
    if flight is None:
        return
    flight.status, flight.headers_at = response.status_code, flight.at
    flight.headers = tuple((name.lower(), value) for name, value in response.headers.multi_items())
    made = _later(library.AsyncByteStream) if later else _now(library.SyncByteStream)
    response.stream = made(response.stream, flight)


def _now(base: Any) -> Any:
    class Tee(base):  # type: ignore[misc]
        """A stream of bytes that are kept as they are read."""

        def __init__(self, inner: Any, flight: Flight) -> None:
            self._inner, self._flight = inner, flight

        def __iter__(self) -> Iterator[bytes]:
            with self._flight.read():
                for chunk in self._inner:
                    self._flight.add(chunk)
                    yield chunk

        def close(self) -> None:
            self._inner.close()

    return Tee


def _later(base: Any) -> Any:
    class Tee(base):  # type: ignore[misc]
        """The same for an asynchronous client."""

        def __init__(self, inner: Any, flight: Flight) -> None:
            self._inner, self._flight = inner, flight

        async def __aiter__(self) -> AsyncIterator[bytes]:
            with self._flight.read():
                async for chunk in self._inner:
                    self._flight.add(chunk)
                    yield chunk

        async def aclose(self) -> None:
            await self._inner.aclose()

    return Tee
