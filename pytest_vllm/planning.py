"""From the selected items to the exchanges that must be recorded, each once."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_vllm import measurements
from pytest_vllm.checks import MARK, CheckSpec
from pytest_vllm.exchanges import CASE_SETS, EXCHANGES, Case, ExchangeSpec, all_cases, by_fixture_name, key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pytest

    from pytest_vllm.measurements import PlannedMeasurement
    from pytest_vllm.target import Server
    from pytest_vllm.wire.record import Planned
    from pytest_vllm.wire.recording import Recording, Request

PROFILE_PARAM = "vllm_profile_name"


def spec_of(item: pytest.Item) -> CheckSpec | None:
    """What a check declares; None for a test that is no check."""
    mark = item.get_closest_marker(MARK)
    return mark.args[0] if mark else None


def params_of(item: pytest.Item) -> dict[str, Any]:
    """The parameters that pytest chose for an item."""
    return dict(item.callspec.params) if hasattr(item, "callspec") else {}


def check_key(item: pytest.Item, spec: CheckSpec) -> str:
    """The check's id with its case in brackets: `errors.bad-request[negative-max-tokens]`."""
    chosen = {name: value for name, value in params_of(item).items() if name != PROFILE_PARAM}
    names = [value.id if isinstance(value, Case) else str(value) for _, value in sorted(chosen.items())]
    return f"{spec.id}[{'-'.join(names)}]" if names else spec.id


def exchanges_of(item: pytest.Item, spec: CheckSpec | None) -> dict[str, Planned]:
    """The exchanges an item needs, by key, dependencies included."""
    known = by_fixture_name()
    found: dict[str, Planned] = {}
    chosen = params_of(item)
    for name in getattr(item, "fixturenames", ()):
        if name in known:
            _add(known[name], chosen, known, found)
    for prefix in spec.exchanges if spec else ():
        for other in EXCHANGES.values():
            if f"{other.id}[".startswith(prefix):
                for combination in _combinations(all_cases(other)):
                    _add(other, combination, known, found)
    return found


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


def wanted(items: Iterable[pytest.Item]) -> dict[str, Wanted]:
    """Every exchange that the items want, by key."""
    found: dict[str, Wanted] = {}
    for item in items:
        spec = spec_of(item)
        needs = spec.needs if spec else ()
        for key, planned in exchanges_of(item, spec).items():
            found.setdefault(key, Wanted(planned)).needs.add(needs)
    return found


def measured_by(items: Iterable[pytest.Item]) -> dict[str, WantedMeasurement]:
    """Every measurement that the items want, by key, those that others come after first."""
    found: dict[str, WantedMeasurement] = {}
    for item in items:
        spec = spec_of(item)
        for key, one in measurements_of(item).items():
            found.setdefault(key, WantedMeasurement(one)).needs.add(spec.needs if spec else ())
    return found


def measurements_of(item: pytest.Item) -> dict[str, PlannedMeasurement]:
    """The measurements that an item needs, by key."""
    return measurements.planned(getattr(item, "fixturenames", ()), params_of(item))


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
    return [planned for planned, spec in specs if spec.restarted is restarted and not spec.first]


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


def _add(
    spec: ExchangeSpec,
    chosen: Mapping[str, Any],
    known: Mapping[str, ExchangeSpec],
    found: dict[str, Planned],
) -> str:
    from pytest_vllm.wire.record import Planned  # noqa: PLC0415 - clients are for runs that record

    case_ids = [chosen[name].id for name in all_cases(spec)]
    key = key_of(spec.id, case_ids)
    if key not in found:
        after = {}
        for name in spec.after:
            after[name] = _add(known[name], chosen, known, found)
        found[key] = Planned(key, spec, {name: chosen[name] for name in spec.cases}, after)
    return key


def _combinations(names: tuple[str, ...]) -> list[dict[str, Case]]:
    combinations: list[dict[str, Case]] = [{}]
    for name in names:
        combinations = [{**one, name: case} for one in combinations for case in CASE_SETS[name]]
    return combinations
