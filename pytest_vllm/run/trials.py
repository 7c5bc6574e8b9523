"""Asks the server trials: the requests of each, what follows from them, what is wrong with the answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.declare.exchanges import ExchangeSpec
from pytest_vllm.declare.explorations import named
from pytest_vllm.run.plan import Planned
from pytest_vllm.wire.store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_vllm.declare.explorations import Exploration, Fault, Shape
    from pytest_vllm.wire.recording import Recording, Request
    from pytest_vllm.wire.server import Server

    #: Records a plan into a store; gives why nothing more is sent, empty while it is.
    Record = Callable[[Sequence[Planned], MemoryStore], str]

#: How often something may follow from what followed.
FOLLOWING = 2


@dataclass(frozen=True)
class Trial:
    """A trial that was asked.

    Args:
        shape: what it was built from; None for one whose requests were written down.
        recordings: named as its requests are.
        faults: what is wrong with them.
    """

    shape: Shape | None
    recordings: tuple[Recording, ...]
    faults: tuple[Fault, ...]

    @property
    def rules(self) -> frozenset[str]:
        """What it breaks for certain."""
        return frozenset(one.rule for one in self.faults if one.certain)


class Asker:
    """Asks trials, all of them at once."""

    def __init__(self, server: Server, exploration: Exploration, record: Record) -> None:
        """Nothing is asked yet.

        Args:
            server: it.
            exploration: builds and judges.
            record: sends a plan.
        """
        self.server, self.exploration, self._record = server, exploration, record
        self.requests = 0
        self.stopped = ""

    def shapes(self, shapes: Sequence[Shape]) -> list[Trial]:
        """Ask trials of these shapes."""
        asked = [self.exploration.requests(self.server, shape) for shape in shapes]
        return [
            Trial(shape, rows, self._judged(rows))
            for shape, rows in zip(shapes, self._asked(asked), strict=True)
        ]

    def written(self, trials: Sequence[Mapping[str, Request]]) -> list[Trial]:
        """Ask trials whose requests were written down."""
        return [Trial(None, rows, self._judged(rows)) for rows in self._asked(trials)]

    def plain(self, requests: Mapping[str, Request]) -> tuple[Recording, ...]:
        """Ask requests from which nothing follows."""
        return self._round([requests])[0]

    def _judged(self, rows: tuple[Recording, ...]) -> tuple[Fault, ...]:
        return tuple(self.exploration.judge(self.server, rows))

    def _asked(self, trials: Sequence[Mapping[str, Request]]) -> list[tuple[Recording, ...]]:
        rows = self._round(trials)
        for _ in range(FOLLOWING):
            more = [{} if self.stopped else self.exploration.follow(self.server, of) for of in rows]
            if not any(more):
                break
            rows = [of + added for of, added in zip(rows, self._round(more), strict=True)]
        return rows

    def _round(self, trials: Sequence[Mapping[str, Request]]) -> list[tuple[Recording, ...]]:
        """Send all at once; a trial's requests stand beside each other."""
        store = MemoryStore()
        plan = [
            Planned(f"explore.asked[{at:03}-{name}]", _spec(request))
            for at, trial in enumerate(trials)
            for name, request in trial.items()
        ]
        if plan and not self.stopped:
            self.stopped = self._record(plan, store)
        self.requests += len(store.keys())
        return [
            tuple(
                named(store.get(key), name)
                for name in trial
                if (key := f"explore.asked[{at:03}-{name}]") in store
            )
            for at, trial in enumerate(trials)
        ]


def _spec(request: Request) -> ExchangeSpec:
    return ExchangeSpec("explore.asked", lambda: request)
