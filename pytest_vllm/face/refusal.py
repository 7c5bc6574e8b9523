"""A run that is refused after its collection: in the words of a usage error, under xdist too.

A worker that raises is an internal error of xdist; so it runs nothing and hands its words to the controller.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.declare.exchanges import EXCHANGES, fixture_name
from pytest_vllm.declare.measurements import GIVEN, MEASURED
from pytest_vllm.face.collection import in_suites
from pytest_vllm.face.items import check_key, params_of, spec_of
from pytest_vllm.face.options import PROFILE_PARAM

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_vllm.declare.exchanges import ExchangeSpec
    from pytest_vllm.declare.measurements import MeasurementSpec

#: The key under which a worker hands over why it runs nothing; plugin.py reads it.
KEY = "vllm_refused"
_AVAILABLE = re.compile(r"available fixtures: (?P<names>[^\n]+)")


def refuse(config: pytest.Config, items: list[pytest.Item], words: str) -> None:
    """Run nothing, and say why. Raises pytest.UsageError where this is no worker."""
    output: dict[str, Any] | None = getattr(config, "workeroutput", None)
    if output is None:
        raise pytest.UsageError(words)
    output[KEY] = words
    items.clear()


def unknown_fixtures(items: Iterable[pytest.Item]) -> str:
    """In pytest's own words, every fixture that a test asks for and nobody provides; empty when none.

    pytest finds out in the set-up of the test, minutes after a server was started for it.
    """
    found: dict[str, None] = {}
    for item in items:
        info = getattr(item, "_fixtureinfo", None)
        if info is None or not isinstance(item, pytest.Function):
            continue
        chosen = getattr(getattr(item, "callspec", None), "params", {})
        for name in info.names_closure:
            if name != "request" and name not in info.name2fixturedefs and name not in chosen:
                found[f"{item.nodeid}\n{_lookup(name, item)}"] = None
    return "\n".join(found)


def twins(items: Iterable[pytest.Item]) -> str:
    """The first check id that two functions declare: one of the two would count for both; empty when none."""
    first: dict[tuple[str, str], pytest.Function] = {}
    for item in items:
        spec = spec_of(item)
        if spec is None or not isinstance(item, pytest.Function):
            continue
        known = first.setdefault((check_key(item, spec), str(params_of(item).get(PROFILE_PARAM, ""))), item)
        if known.function is not item.function:
            places = " and ".join(one.nodeid.partition("[")[0] for one in (known, item))
            return f"check {spec.id} is declared twice, by {places}: give each an id of its own"
    return ""


def _lookup(name: str, item: pytest.Function) -> str:
    """Words of pytest on a fixture that is not there: the nearest name first, bundled requests left out.

    The recordings of the bundled suites are fixtures too: some 700 names that nobody misspelt.
    """
    from _pytest.fixtures import FixtureLookupError  # noqa: PLC0415 - pytest's own words

    said = str(FixtureLookupError(name, item._request).formatrepr())  # noqa: SLF001 - as pytest does
    match = _AVAILABLE.search(said)
    if match is None:
        return said
    names = match["names"].split(", ")
    bundled = _bundled()
    mine = [one for one in names if one not in bundled]
    near = difflib.get_close_matches(name, [*mine, *_parameters(name)], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    left = f", and {len(names) - len(mine)} requests of the bundled suites" if len(mine) < len(names) else ""
    missing = f"fixture {name!r} not found"
    said = said.replace(match["names"], f"{', '.join(mine)}{left}", 1)
    return said.replace(missing, f"{missing}{hint}", 1)


def _bundled() -> set[str]:
    """The fixtures of bundled exchanges, measurements and cases."""
    specs: list[ExchangeSpec | MeasurementSpec] = [*EXCHANGES.values(), *MEASURED.values()]
    files = {spec.build.__code__.co_filename for spec in specs}
    inside = {file for file in files if in_suites(Path(file))}
    ours = [spec for spec in specs if spec.build.__code__.co_filename in inside]
    return {name for spec in ours for name in (fixture_name(spec.id), *spec.cases)}


def _parameters(name: str) -> tuple[str, ...]:
    """What an exchange or measurement that takes this name could have meant beside fixtures."""
    exchange = any(name in spec.after for spec in EXCHANGES.values())
    measure = any(name in spec.after for spec in MEASURED.values())
    return ("server",) if exchange else GIVEN if measure else ()
