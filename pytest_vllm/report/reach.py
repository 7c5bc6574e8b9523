"""The census of a run: what its requests exercised of all that can be asked, and what they never touched."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts.reach import BODIES, dimensions, request_fields, unsent
from pytest_vllm.report.asked import fields_of, numbers_of, route_of, words_of
from pytest_vllm.wire.recording import Undecided

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_vllm.wire.recording import Recording


@dataclass
class RouteFields:
    """The fields of one route.

    Args:
        served: those that the version takes.
        sent: those that a request set.
        answered: those that a request set which was answered with 200.
    """

    served: tuple[str, ...]
    sent: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)

    @property
    def missing(self) -> tuple[str, ...]:
        """Served and never sent."""
        return tuple(name for name in self.served if name not in self.sent)


@dataclass
class Reach:
    """What a run asked.

    Args:
        version: vLLM's version, which says what there is to ask.
        requests: how many there were.
        fields: by route.
        reached: by dimension, how many requests had each value.
        maxima: by dimension, the largest number and the exchange that had it.
        pairs: pairs of values that one request had together, of those that are counted.
        countable: how many pairs there are.
    """

    version: str
    requests: int = 0
    fields: dict[str, RouteFields] = field(default_factory=dict)
    reached: dict[str, Counter[str]] = field(default_factory=dict)
    maxima: dict[str, tuple[float, str]] = field(default_factory=dict)
    pairs: set[tuple[str, str, str, str]] = field(default_factory=set)
    countable: int = 0

    @property
    def sent(self) -> tuple[int, int]:
        """How many fields were sent, and how many there are, over all routes."""
        served = [one.served for one in self.fields.values()]
        missing = sum(len(one.missing) for one in self.fields.values())
        return sum(map(len, served)) - missing, sum(map(len, served))

    def plain(self) -> dict[str, Any]:
        """The same for JSON."""
        sent, served = self.sent
        reasons = unsent()
        return {
            "version": self.version,
            "requests": self.requests,
            "fields": {"sent": sent, "served": served},
            "routes": {
                route: {
                    "served": len(one.served),
                    "sent": len(one.served) - len(one.missing),
                    "only refused": sorted((one.sent - one.answered) & set(one.served)),
                    "never sent": {name: reasons.get(name, "") for name in one.missing},
                }
                for route, one in self.fields.items()
            },
            "maxima": {name: {"value": value, "exchange": key} for name, (value, key) in self.maxima.items()},
            "dimensions": {
                one.name: {
                    "title": one.title,
                    "reached": dict(self.reached[one.name]),
                    "missed": [value for value in one.counted if not self.reached[one.name][value]],
                }
                for one in dimensions()
            },
            "pairs": {"reached": len(self.pairs), "of": self.countable},
        }


def reach_of(recordings: Sequence[Recording], version: str) -> Reach:
    """The census of some recordings of a server of a version."""
    asked = [one for one in recordings if one.request.path]
    found = Reach(version, len(asked))
    found.fields = {route: RouteFields(tuple(request_fields(route, version))) for route in BODIES}
    found.reached = {one.name: Counter() for one in dimensions()}
    around = _around(asked)
    pairs: set[tuple[str, str, str, str]] = set()
    for one in asked:
        _count_fields(found, one)
        values = _values(found, one, around[one.key])
        pairs |= _pairs(values)
    paired = [one for one in dimensions() if one.pair]
    counted = {one.name: set(one.counted) for one in paired}
    found.pairs = {pair for pair in pairs if pair[1] in counted[pair[0]] and pair[3] in counted[pair[2]]}
    found.countable = sum(len(a.counted) * len(b.counted) for a, b in combinations(paired, 2))
    return found


def _count_fields(found: Reach, one: Recording) -> None:
    route = found.fields.get(route_of(one))
    if route is not None:
        names = fields_of(one.request.json)
        route.sent |= names
        if one.status == 200:
            route.answered |= names


def _values(found: Reach, one: Recording, around: Mapping[str, float]) -> dict[str, set[str]]:
    """What one request had in every dimension; maxima are kept on the way."""
    try:
        numbers = {**numbers_of(one), **around}
    except (Undecided, ValueError):  # a broken answer counts no tokens
        numbers = dict(around)
    values = words_of(one)
    for dimension in dimensions():
        if dimension.bounds and dimension.name in numbers:
            number = numbers[dimension.name]
            values[dimension.name] = {dimension.place(number)}
            if number > found.maxima.get(dimension.name, (-1.0, ""))[0]:
                found.maxima[dimension.name] = (number, one.key)
        found.reached[dimension.name].update(values.get(dimension.name, ()))
    return values


def _pairs(values: Mapping[str, set[str]]) -> set[tuple[str, str, str, str]]:
    paired = [one.name for one in dimensions() if one.pair and values.get(one.name)]
    return {
        (first, left, second, right)
        for first, second in combinations(paired, 2)
        for left, right in product(values[first], values[second])
    }


def _around(recordings: Iterable[Recording]) -> dict[str, dict[str, float]]:
    """By key: requests in flight beside one, how often it was sent until then, seconds of rest before it."""
    timed = sorted((one for one in recordings if one.sent), key=lambda one: one.sent)
    found: dict[str, dict[str, float]] = {one.key: {} for one in recordings}
    again: defaultdict[str, int] = defaultdict(int)
    ends: list[float] = []
    last = None
    for one in timed:
        ends = [end for end in ends if end > one.sent]
        same = json.dumps([one.request.path, one.request.json], sort_keys=True, ensure_ascii=True)
        again[same] += 1
        found[one.key] = {"beside": len(ends), "again": again[same]}
        if last is not None:
            found[one.key]["idle"] = max(0.0, one.sent - last)
        ends.append(one.sent + one.seconds)
        last = max(last or 0.0, one.sent + one.seconds)
    return found
