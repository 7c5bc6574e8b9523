"""A server of fakes: it answers what a function says, without a wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.declare.explorations import Exploration, Fault
from pytest_vllm.run.trials import Asker
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from random import Random

    from pytest_vllm.run.plan import Planned
    from pytest_vllm.wire.store import RecordingStore

SERVER = Server("http://127.0.0.1:1", "m", version="0.32.0")
NAMES = ("a", "b", "c")


def draw(chance: Random, server: Server) -> dict[str, int]:
    """Three numbers."""
    del server
    return {name: chance.randrange(10) for name in NAMES}


def simpler(shape: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """One number is nothing, or one less."""
    for name in NAMES:
        if shape[name]:
            yield {**shape, name: 0}
    for name in NAMES:
        if shape[name]:
            yield {**shape, name: shape[name] - 1}


def judge(server: Server, rows: Sequence[Recording]) -> list[Fault]:
    """A status that is not 200 is wrong; 400 perhaps."""
    del server
    wrong = [one for one in rows if one.status != 200]
    return [Fault(f"status-{one.status}", f"{one.key}: {one.status}", one.status != 400) for one in wrong]


class Fake:
    """Answers with the status that a function of the shape says."""

    def __init__(self, status: Callable[[Mapping[str, int]], int]) -> None:
        """Nothing was asked yet."""
        self.status = status
        self.asked: list[Mapping[str, int]] = []
        self.stops_after = 10**9

    def record(self, plan: Sequence[Planned], store: RecordingStore) -> str:
        """As `run.explore` records."""
        for one in plan:
            request: Request = one.spec.build()
            self.asked.append(request.json)
            store.save(Recording(one.key, request, status=self.status(request.json)))
        return "it is gone" if len(self.asked) >= self.stops_after else ""

    def asker(self) -> Asker:
        """An asker of it."""
        requests: Any = lambda server, shape: {"whole": Request("POST", "/x", json=dict(shape))}  # noqa: ARG005, E731
        return Asker(SERVER, Exploration(draw, simpler, requests, lambda *_: {}, judge), self.record)
