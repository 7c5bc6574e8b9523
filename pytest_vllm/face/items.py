"""What collected items are about: their check, their case, and the exchanges and measurements they want."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.declare import measurements
from pytest_vllm.declare.exchanges import (
    CASE_SETS,
    EXCHANGES,
    Case,
    DeclarationError,
    ExchangeSpec,
    all_cases,
    by_fixture_name,
    key_of,
)
from pytest_vllm.face.options import MARK, PROFILE_PARAM
from pytest_vllm.run.plan import Planned, Wanted, WantedMeasurement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_vllm.declare.checks import CheckSpec
    from pytest_vllm.declare.measurements import PlannedMeasurement


def spec_of(item: pytest.Item) -> CheckSpec | None:
    """What a check declares; None for a test that is not a check."""
    mark = item.get_closest_marker(MARK)
    return mark.args[0] if mark else None


def params_of(item: pytest.Item) -> dict[str, Any]:
    """The parameters that pytest chose for an item."""
    return dict(item.callspec.params) if hasattr(item, "callspec") else {}


def check_key(item: pytest.Item, spec: CheckSpec) -> str:
    """The check's id with its case in brackets: `errors.bad-request[negative-max-tokens]`."""
    chosen = {name: value for name, value in params_of(item).items() if _is_case(name)}
    names = [value.id if isinstance(value, Case) else str(value) for _, value in sorted(chosen.items())]
    return f"{spec.id}[{'-'.join(names)}]" if names else spec.id


def _is_case(name: str) -> bool:
    """Whether a parameter says what is checked, not where or how often (pytest-repeat)."""
    return name != PROFILE_PARAM and not name.startswith("__pytest_repeat")


def exchanges_of(item: pytest.Item, spec: CheckSpec | None) -> dict[str, Planned]:
    """The exchanges an item needs, by key, dependencies included. Raises pytest.UsageError on a wrong one."""
    try:
        return _exchanges_of(item, spec)
    except DeclarationError as error:
        raise pytest.UsageError(str(error)) from None


def _exchanges_of(item: pytest.Item, spec: CheckSpec | None) -> dict[str, Planned]:
    known = by_fixture_name()
    found: dict[str, Planned] = {}
    chosen = params_of(item)
    for name in getattr(item, "fixturenames", ()):
        if name in known:
            _add(known[name], chosen, known, found)
    for prefix in spec.exchanges if spec else ():
        found |= {key: one for key, one in _beginning(prefix, len(EXCHANGES)).items() if key not in found}
    return found


@lru_cache(maxsize=256)
def _beginning(prefix: str, _declared: int) -> Mapping[str, Planned]:
    """Every exchange whose id begins so, in all its cases; many checks name the same."""
    known = by_fixture_name()
    found: dict[str, Planned] = {}
    for other in EXCHANGES.values():
        if f"{other.id}[".startswith(prefix):
            for combination in _combinations(all_cases(other)):
                _add(other, combination, known, found)
    return found


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
    try:
        return measurements.planned(getattr(item, "fixturenames", ()), params_of(item))
    except DeclarationError as error:
        raise pytest.UsageError(str(error)) from None


def _add(
    spec: ExchangeSpec,
    chosen: Mapping[str, Any],
    known: Mapping[str, ExchangeSpec],
    found: dict[str, Planned],
) -> str:
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
