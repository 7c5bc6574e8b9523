"""Loads that are declared once, performed once per run, judged many times.

A measurement is a function from what is known of the deployment to a `Workload`. Its id, with dots and
hyphens as underscores, is the fixture name under which checks get its `Measured`. It runs in the controlling
process after the recording, alone on the server. Parameters are chosen by name: `server`, `profile`,
`figures` (what hardware and model allow, or None), `budget` (seconds that it may take), case sets, and other
measurements, which are performed before it.
"""

from __future__ import annotations

import difflib
import inspect
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_vllm.declare.exchanges import CASE_SETS, ID, DeclarationError, fixture_name, key_of
from pytest_vllm.measure.measured import Measured
from pytest_vllm.wire.recording import Undecided
from pytest_vllm.wire.store import file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pytest_vllm.declare.exchanges import Case
    from pytest_vllm.measure.workload import Workload

GIVEN = ("server", "profile", "figures", "budget")
FOLDER = "measurements"


@dataclass(frozen=True)
class MeasurementSpec:
    """A declared measurement.

    Args:
        id: dotted name.
        build: function of what is named in `GIVEN`, cases and earlier measurements, giving the Workload.
        after: fixture names of the measurements that `build` takes.
        cases: names of the case sets that multiply it.
        weight: share of the run's budget, relative to other measurements; 0: it ends by itself.
        own: whether a project declares it: it is measured in every rehearsal that it is part of.
    """

    id: str
    build: Callable[..., Workload]
    after: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    weight: float = 1.0
    own: bool = False


@dataclass(frozen=True)
class PlannedMeasurement:
    """A measurement with its cases chosen."""

    key: str
    spec: MeasurementSpec
    cases: Mapping[str, Case] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)


MEASURED: dict[str, MeasurementSpec] = {}


def declared(
    id: str,  # noqa: A002
    build: Callable[..., Workload],
    *,
    weight: float = 1.0,
    own: bool = False,
) -> tuple[str, ...]:
    """Register a measurement; returns the names of the cases and measurements that `build` takes.

    Raises ValueError for an id that is malformed or declared by another function already.
    """
    if not ID.fullmatch(id):
        raise ValueError(f"measurement id {id!r}: dotted lower-case words, such as 'throughput.decode.one'")
    if id in MEASURED and MEASURED[id].build.__code__ != build.__code__:
        raise ValueError(f"measurement {id} is declared twice; ids are unique over all suites")
    names = tuple(name for name in inspect.signature(build).parameters if name not in GIVEN)
    chosen = tuple(name for name in names if name in CASE_SETS)
    after = tuple(name for name in names if name not in CASE_SETS)
    MEASURED[id] = MeasurementSpec(id, build, after, chosen, weight, own)
    return names


def by_fixture() -> dict[str, MeasurementSpec]:
    """All declared measurements by the fixture name that checks use."""
    return {fixture_name(spec.id): spec for spec in MEASURED.values()}


def cases_of(spec: MeasurementSpec) -> tuple[str, ...]:
    """Case sets of a measurement and of everything it comes after."""
    known = by_fixture()
    names = dict.fromkeys(spec.cases)
    for after in spec.after:
        if after not in known:
            near = difflib.get_close_matches(after, [*known, *CASE_SETS, *GIVEN], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            what = f"neither one of {', '.join(GIVEN)}, nor a case set, nor a measurement"
            raise DeclarationError(f"measurement {spec.id}: its parameter {after!r} is {what}{hint}")
        names.update(dict.fromkeys(cases_of(known[after])))
    return tuple(sorted(names))


def planned(names: Iterable[str], chosen: Mapping[str, Case]) -> dict[str, PlannedMeasurement]:
    """The measurements among some fixture names, by key, those they come after first."""
    known = by_fixture()
    found: dict[str, PlannedMeasurement] = {}
    for name in names:
        if name in known:
            _add(known[name], chosen, known, found)
    return found


def _add(
    spec: MeasurementSpec,
    chosen: Mapping[str, Case],
    known: Mapping[str, MeasurementSpec],
    found: dict[str, PlannedMeasurement],
) -> str:
    key = key_of(spec.id, [chosen[name].id for name in cases_of(spec)])
    if key not in found:
        after = {name: _add(known[name], chosen, known, found) for name in spec.after}
        found[key] = PlannedMeasurement(key, spec, {name: chosen[name] for name in spec.cases}, after)
    return key


class Measurements:
    """The measurements of one server on disk, one JSON file each; a missing one is undecided."""

    def __init__(self, folder: Path) -> None:
        """Nothing is read until it is asked for."""
        self.folder = folder / FOLDER
        self._read: dict[str, Measured] = {}
        self._keys: dict[Path, str] = {}

    def save(self, measured: Measured) -> None:
        """Write one; no reader ever sees half of it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.path(measured.key)
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_text(json.dumps(measured.plain()), "utf-8")
        os.replace(fresh, path)  # noqa: PTH105 - the atomic one
        self._read[measured.key] = measured

    def get(self, key: str) -> Measured:
        """The measurement of that key. Raises Undecided when there is none, ValueError when it is damaged."""
        if key not in self._read:
            path = self.path(key)
            if not path.is_file():
                raise Undecided(f"{key} was not measured in this run")
            try:
                self._read[key] = Measured.of(json.loads(path.read_text("utf-8")))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}: {error}, so the file is damaged") from error
        return self._read[key]

    def keys(self) -> tuple[str, ...]:
        """The keys of all measurements that are on disk, or were when they were read; sorted."""
        files = sorted(self.folder.glob("[!.]*.json")) if self.folder.is_dir() else []
        for path in files:
            if path not in self._keys:
                self._keys[path] = str(json.loads(path.read_text("utf-8"))["key"])
        return tuple(sorted({self._keys[path] for path in files} | self._read.keys()))

    def path(self, key: str) -> Path:
        """Where one lies."""
        return self.folder / f"{file_name(key).removesuffix('.jsonl')}.json"
