"""What travels between the controlling process and xdist workers: the plan one way, servers the other.

Workers collect, so only they know what is wanted; the controller boots and records, once for all. The
first worker's plan is enough: every worker collects the same items.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _pytest.pathlib import import_path

from pytest_vllm.declare.capabilities import OWN
from pytest_vllm.declare.exchanges import CASE_SETS, EXCHANGES
from pytest_vllm.declare.measurements import MEASURED, PlannedMeasurement
from pytest_vllm.run.plan import Planned, Wanted, WantedMeasurement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

    from pytest_vllm.declare.exchanges import Case

PLAN = "plan.json"
MISSED = "missed.json"


@dataclass(frozen=True)
class Plan:
    """What the items of a profile want.

    Args:
        live: whether some of them talk to the server themselves.
        wants: exchanges by key.
        measures: measurements by key.
    """

    live: bool
    wants: Mapping[str, Wanted]
    measures: Mapping[str, WantedMeasurement]


def write_plan(folder: Path, plans: Mapping[str, Plan]) -> None:
    """Write down what the items of each profile want."""
    body = {
        name: {
            "live": plan.live,
            "wanted": [_row("exchange", one) for one in plan.wants.values()],
            "measured": [_row("measurement", one) for one in plan.measures.values()],
            "capabilities": [{"name": one.name, "file": one.file} for one in OWN.values()],
        }
        for name, plan in plans.items()
    }
    (folder / PLAN).write_text(json.dumps(body), "utf-8")


def read_plan(folder: Path, config: pytest.Config) -> dict[str, Plan]:
    """What `write_plan` wrote."""
    body = json.loads((folder / PLAN).read_text("utf-8"))
    for values in body.values():
        for row in values["wanted"] + values["measured"]:
            _import(row, config)
        for row in values["capabilities"]:
            if row["name"] not in OWN:
                _import_file(row["file"], config)
    return {
        name: Plan(
            values["live"],
            {row["key"]: _wanted(row) for row in values["wanted"]},
            {row["key"]: _wanted_measurement(row) for row in values["measured"]},
        )
        for name, values in body.items()
    }


def write_missed(folder: Path, missed: Sequence[str]) -> None:
    """Write down what was asked for and names nothing, in words."""
    (folder / MISSED).write_text(json.dumps(list(missed)), "utf-8")


def read_missed(folder: Path) -> list[str]:
    """What `write_missed` wrote."""
    words: list[str] = json.loads((folder / MISSED).read_text("utf-8"))
    return words


def _row(kind: str, one: Wanted | WantedMeasurement) -> dict[str, Any]:
    planned = one.planned
    return {
        "key": planned.key,
        kind: planned.spec.id,
        "file": planned.spec.build.__code__.co_filename,
        "cases": {name: case.id for name, case in planned.cases.items()},
        "after": dict(planned.after),
        "needs": [list(needs) for needs in one.needs],
    }


def _import(row: Mapping[str, Any], config: pytest.Config) -> None:
    """An exchange of a person's own test file is not known here until that file is imported."""
    known = row["exchange"] in EXCHANGES if "exchange" in row else row["measurement"] in MEASURED
    if not known:
        _import_file(row["file"], config)


def _import_file(file: str, config: pytest.Config) -> None:
    mode = config.getoption("importmode")
    import_path(Path(file), mode=mode, root=config.rootpath, consider_namespace_packages=False)


def _wanted(row: Mapping[str, Any]) -> Wanted:
    planned = Planned(row["key"], EXCHANGES[row["exchange"]], _cases(row), dict(row["after"]))
    return Wanted(planned, {tuple(needs) for needs in row["needs"]})


def _wanted_measurement(row: Mapping[str, Any]) -> WantedMeasurement:
    planned = PlannedMeasurement(row["key"], MEASURED[row["measurement"]], _cases(row), dict(row["after"]))
    return WantedMeasurement(planned, {tuple(needs) for needs in row["needs"]})


def _cases(row: Mapping[str, Any]) -> dict[str, Case]:
    return {
        name: next(case for case in CASE_SETS[name] if case.id == id_) for name, id_ in row["cases"].items()
    }
