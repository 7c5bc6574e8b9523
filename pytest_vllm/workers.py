"""What travels between the controlling process and xdist workers: the plan one way, servers the other.

Workers collect, so only they know what is wanted; the controller boots and records, once for all. The
first worker's plan is enough: every worker collects the same items.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _pytest.pathlib import import_path

from pytest_vllm.exchanges import CASE_SETS, EXCHANGES
from pytest_vllm.planning import Wanted
from pytest_vllm.wire.record import Planned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

PLAN = "plan.json"
MISSED = "missed.json"


def write_plan(folder: Path, wants: Mapping[str, Mapping[str, Wanted]], live: Mapping[str, bool]) -> None:
    """Write down what the items of each profile want."""
    body = {
        name: {"live": live[name], "wanted": [_row(one) for one in of_profile.values()]}
        for name, of_profile in wants.items()
    }
    (folder / PLAN).write_text(json.dumps(body), "utf-8")


def read_plan(folder: Path, config: pytest.Config) -> dict[str, tuple[bool, dict[str, Wanted]]]:
    """What `write_plan` wrote: profile -> (whether items need it live, what they want)."""
    body = json.loads((folder / PLAN).read_text("utf-8"))
    for values in body.values():
        for row in values["wanted"]:
            _import(row, config)
    return {
        name: (values["live"], {row["key"]: _wanted(row) for row in values["wanted"]})
        for name, values in body.items()
    }


def write_missed(folder: Path, missed: Sequence[str]) -> None:
    """Write down what was asked for and names nothing, in words."""
    (folder / MISSED).write_text(json.dumps(list(missed)), "utf-8")


def read_missed(folder: Path) -> list[str]:
    """What `write_missed` wrote."""
    words: list[str] = json.loads((folder / MISSED).read_text("utf-8"))
    return words


def _row(one: Wanted) -> dict[str, Any]:
    planned = one.planned
    return {
        "key": planned.key,
        "exchange": planned.spec.id,
        "file": planned.spec.build.__code__.co_filename,
        "cases": {name: case.id for name, case in planned.cases.items()},
        "after": dict(planned.after),
        "needs": [list(needs) for needs in one.needs],
    }


def _import(row: Mapping[str, Any], config: pytest.Config) -> None:
    """An exchange of a person's own test file is not known here until that file is imported."""
    if row["exchange"] not in EXCHANGES:
        mode = config.getoption("importmode")
        import_path(Path(row["file"]), mode=mode, root=config.rootpath, consider_namespace_packages=False)


def _wanted(row: Mapping[str, Any]) -> Wanted:
    cases = {
        name: next(case for case in CASE_SETS[name] if case.id == id_) for name, id_ in row["cases"].items()
    }
    planned = Planned(row["key"], EXCHANGES[row["exchange"]], cases, dict(row["after"]))
    return Wanted(planned, {tuple(needs) for needs in row["needs"]})
