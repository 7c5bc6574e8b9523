"""What a run is to record and measure, from what its items want and what the server can do. Pure."""

from __future__ import annotations

import hashlib
import inspect
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_vllm.declare.exchanges import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_vllm.declare.exchanges import Case, ExchangeSpec
    from pytest_vllm.declare.measurements import PlannedMeasurement
    from pytest_vllm.wire.recording import Recording, Request
    from pytest_vllm.wire.server import Server


@dataclass(frozen=True)
class Planned:
    """One exchange to record.

    Args:
        key: the key of its recording.
        spec: the declared exchange.
        cases: case set name -> the case that applies.
        after: parameter name of `spec.build` -> key of the exchange whose recording it takes.
    """

    key: str
    spec: ExchangeSpec
    cases: Mapping[str, Case] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Wanted:
    """An exchange that selected items want, and what each of them needs of the server."""

    planned: Planned
    needs: set[tuple[str, ...]] = field(default_factory=set)


@dataclass
class WantedMeasurement:
    """A measurement that selected items want, and what each of them needs of the server."""

    planned: PlannedMeasurement
    needs: set[tuple[str, ...]] = field(default_factory=set)


def measures_for(wants: Mapping[str, WantedMeasurement], server: Server) -> list[PlannedMeasurement]:
    """What to measure: whatever at least one item wants whose needs this server meets."""
    return [one.planned for one in wants.values() if any(all(map(server.can, needs)) for needs in one.needs)]


def plan_for(wants: Mapping[str, Wanted], server: Server, *, restarted: bool = False) -> list[Planned]:
    """What to record: whatever at least one item wants whose needs this server meets.

    Args:
        wants: by key.
        server: what it can do.
        restarted: give what is recorded after a restart, instead of everything else.
    """
    able = [one for one in wants.values() if any(all(map(server.can, needs)) for needs in one.needs)]
    specs = [(one.planned, one.planned.spec) for one in able]
    return [
        planned
        for planned, spec in specs
        if spec.restarted is restarted
        and not (spec.first or spec.afterwards or spec.program or spec.explores)
    ]


def programs_of(wants: Mapping[str, Wanted], server: Server) -> list[Planned]:
    """What somebody's clients are to perform."""
    able = [one for one in wants.values() if any(all(map(server.can, needs)) for needs in one.needs)]
    return [one.planned for one in able if one.planned.spec.program]


def afterwards(wants: Mapping[str, Wanted], server: Server, recorded: Sequence[Recording]) -> list[Planned]:
    """What follows from the recordings of a run: each request once, whoever gave reason to it."""
    able = [one for one in wants.values() if any(all(map(server.can, needs)) for needs in one.needs)]
    found: dict[str, Planned] = {}
    for spec in [one.planned.spec for one in able if one.planned.spec.afterwards]:
        try:
            requests = list(spec.build(server=server, recorded=recorded))
        except Exception as error:  # noqa: BLE001 - a builder is a suite author's code; the run goes on
            found[spec.id] = Planned(spec.id, replace(spec, build=_failing(error), afterwards=False))
            continue
        for request in requests:
            key = key_of(spec.id, [_checksum(request)])
            asked = replace(spec, build=_given(request), afterwards=False)
            found.setdefault(key, Planned(key, asked))
    return list(found.values())


def _checksum(request: Request) -> str:
    asked = json.dumps([request.method, request.path, request.json], sort_keys=True)
    return hashlib.sha256(asked.encode()).hexdigest()[:16]


def _failing(error: Exception) -> Callable[[], Request]:
    def build() -> Request:
        raise error

    return build


def _given(request: Request) -> Callable[[], Request]:
    return lambda: request


def first_of(wants: Mapping[str, Wanted]) -> list[Planned]:
    """What to send before anything else; what the server can do is not known yet."""
    return [one.planned for one in wants.values() if one.planned.spec.first]


def with_what_they_need(plan: Sequence[Planned], prefixes: tuple[str, ...]) -> list[Planned]:
    """Those of a plan whose key begins with one of the prefixes, and what they come after, in its order."""
    by_key = {one.key: one for one in plan}
    kept: set[str] = set()
    left = [key for key in by_key if key.startswith(prefixes)]
    while left:
        key = left.pop()
        if key in by_key and key not in kept:
            kept.add(key)
            left += by_key[key].after.values()
    return [one for one in plan if one.key in kept]


def build(planned: Planned, server: Server, done: Mapping[str, Recording]) -> Request:
    """The request of a planned exchange, given the recordings it comes after."""
    earlier = {name: done[key] for name, key in planned.after.items()}
    takes_server = "server" in inspect.signature(planned.spec.build).parameters
    given = {"server": server} if takes_server else {}
    request: Request = planned.spec.build(**given, **planned.cases, **earlier)
    return request
