"""The order of a plan: what waits for what, and how long the chains are."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from pytest_vllm.wire.endless import most_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_vllm.run.plan import Planned
    from pytest_vllm.wire.recording import Request

    #: Rank and tokens as negatives, place in the plan, what is planned and its request.
    Ready = tuple[int, int, int, Planned, Request]

#: So many of the shortest streams of a route come before all else: whether its streams end is known soon.
TASTES = 3


def kind_of(request: Request) -> tuple[str, bool]:
    """What ends, or does not, like this request's answer: the route, and whether it streams."""
    return request.path.partition("?")[0], request.streams


def stages(
    plan: Sequence[Planned], recorded: Iterable[str] = ()
) -> tuple[list[Planned], list[list[Planned]], list[Planned]]:
    """The plan in three parts: what may run together, crowds, and after them, in order, what runs one by one.

    An exchange that comes after one that runs by itself does so too, and so does one that comes after one of
    a crowd.

    Raises ValueError when keys repeat, the plan has a cycle, or a dependency is neither planned nor recorded.
    """
    ordered = _ordered(plan, set(recorded))
    late: set[str] = set()
    crowded: dict[str, str] = {}
    for planned in ordered:
        if planned.spec.alone or planned.spec.metrics or late.intersection(planned.after.values()):
            late.add(planned.key)
        elif planned.spec.crowd:
            crowded[planned.key] = planned.spec.crowd
        elif crowded.keys() & set(planned.after.values()):
            late.add(planned.key)
    crowds = {name: [p for p in ordered if crowded.get(p.key) == name] for name in crowded.values()}
    first = [p for p in ordered if p.key not in late and p.key not in crowded]
    return first, list(crowds.values()), [p for p in ordered if p.key in late]


class Queue:
    """What may be sent now: the longest chains first, then what generates most. The plan is in order.

    What is to be spread comes between the others, in proportion. Short streams come first, a few of each
    route, and as long as it is doubted that its streams end.
    """

    def __init__(self, plan: Sequence[Planned]) -> None:
        """Everything waits; `free` says what does not."""
        self._place = {planned.key: place for place, planned in enumerate(plan)}
        self._waiting = {p.key: (p, set(p.after.values()) & self._place.keys()) for p in plan}
        self._rank = _ranks(plan)
        self._ready: list[Ready] = []
        self._spread: list[tuple[Planned, Request]] = []
        self._share = sum(planned.spec.spread for planned in plan) / max(1, len(plan))
        self._sent = self._sent_spread = 0
        self._tasted: Counter[tuple[str, bool]] = Counter()
        #: Of each kind what is ready and known to be short, by its place: the events at most, and the entry.
        self._short: defaultdict[tuple[str, bool], dict[int, tuple[int, Ready]]] = defaultdict(dict)

    def __bool__(self) -> bool:
        """Whether anything may be sent."""
        return bool(self._ready or self._spread)

    def free(self, done: str = "") -> list[Planned]:
        """What waits for nothing more now that this exchange is done; each is named once."""
        for _, missing in self._waiting.values():
            missing.discard(done)
        freed = [planned for planned, missing in self._waiting.values() if not missing]
        for planned in freed:
            del self._waiting[planned.key]
        return freed

    def push(self, planned: Planned, request: Request, tokens: int) -> None:
        """Add an exchange whose request is built and may generate so many tokens."""
        if planned.spec.spread:
            self._spread.append((planned, request))
            return
        key = planned.key
        entry = (-self._rank[key], -tokens, self._place[key], planned, request)
        heapq.heappush(self._ready, entry)
        most = most_events(request)
        if most is not None and request.abort_after is None:
            self._short[kind_of(request)][self._place[key]] = (most, entry)

    def pop(self, doubted: Callable[[Request], bool] = lambda _: False) -> tuple[Planned, Request]:
        """Take the exchange to send next.

        Args:
            doubted: whether no answer of a request's kind has ended yet, and some did not.
        """
        if (taste := self._taste(doubted)) is not None:
            return taste
        due = self._sent_spread < self._share * (self._sent + 1)
        self._sent += 1
        if self._spread and (due or not self._ready):
            self._sent_spread += 1
            return self._spread.pop(0)
        *_, place, planned, request = heapq.heappop(self._ready)
        self._short[kind_of(request)].pop(place, None)
        return planned, request

    def _taste(self, doubted: Callable[[Request], bool]) -> tuple[Planned, Request] | None:
        """The shortest stream of a route that is still to be tasted, or doubted; None for none."""
        wanted = [
            row
            for kind, short in self._short.items()
            if short and (self._tasted[kind] < TASTES or doubted(next(iter(short.values()))[1][-1]))
            for row in short.values()
        ]
        if not wanted:
            return None
        _, found = min(wanted, key=lambda row: (row[0], row[1][:3]))
        self._ready.remove(found)
        heapq.heapify(self._ready)
        *_, place, planned, request = found
        del self._short[kind_of(request)][place]
        self._sent += 1
        self._tasted[kind_of(request)] += 1
        return planned, request


def _ranks(plan: Sequence[Planned]) -> dict[str, int]:
    """Key -> how many exchanges the longest chain from here on has."""
    rank = {planned.key: 1 for planned in plan}
    for planned in reversed(plan):
        for key in planned.after.values():
            if key in rank:
                rank[key] = max(rank[key], rank[planned.key] + 1)
    return rank


def longest_chain(plan: Sequence[Planned], seconds: Mapping[str, float]) -> float:
    """Seconds of the dependency chain that took longest. The plan is in order."""
    until: dict[str, float] = {}
    for planned in plan:
        before = max((until.get(key, 0.0) for key in planned.after.values()), default=0.0)
        until[planned.key] = before + seconds.get(planned.key, 0.0)
    return max(until.values(), default=0.0)


def _ordered(plan: Sequence[Planned], recorded: set[str]) -> list[Planned]:
    by_key = {planned.key: planned for planned in plan}
    if len(by_key) != len(plan):
        raise ValueError("the plan holds a key twice: each exchange is recorded once")
    ordered: dict[str, Planned] = {}
    for first in plan:
        open_: list[str] = []  # the chain from `first` down to what is looked at
        _visit(first, by_key, recorded, ordered, open_)
    return list(ordered.values())


def _visit(
    planned: Planned,
    by_key: Mapping[str, Planned],
    recorded: set[str],
    ordered: dict[str, Planned],
    open_: list[str],
) -> None:
    if planned.key in ordered:
        return
    if planned.key in open_:
        raise ValueError(f"exchanges wait for each other: {' -> '.join([*open_, planned.key])}")
    open_.append(planned.key)
    for key in planned.after.values():
        if key in by_key:
            _visit(by_key[key], by_key, recorded, ordered, open_)
        elif key not in recorded:
            raise ValueError(f"{planned.key} comes after {key}, which is neither planned nor recorded")
    open_.pop()
    ordered[planned.key] = planned
