"""What ships with pytest-vllm, as lists: checks, defects, versions."""

# ruff: noqa: PLC0415 - every command imports what it needs when it runs

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pytest_vllm.cli.command import JSON, UsageError, command, flag, option

if TYPE_CHECKING:
    from argparse import Namespace


@command(
    "checks",
    option("--area", "AREA", "only the checks of this suite"),
    JSON,
    flag("--markdown", "print the page suites/CATALOGUE.md"),
)
def checks(given: Namespace) -> None:
    """List the bundled checks and the requirement that each proves."""
    from pytest_vllm.face.catalogue import entries, markdown
    from pytest_vllm.profile.words import unknown
    from pytest_vllm.report.tables import print_rows

    found = entries()
    areas = sorted({entry.area for entry in found})
    if given.area is not None and given.area not in areas:
        raise UsageError(unknown("area", given.area, areas))
    found = [entry for entry in found if given.area in (None, entry.area)]
    if given.markdown:
        print(markdown(found), end="")
        return
    rows = [entry.plain() for entry in found]
    kept = None if given.json else ("id", "level", "tier", "needs", "fact")
    rows = [row if kept is None else {key: row[key] for key in kept} for row in rows]
    print_rows(rows, as_json=given.json)


@command("defects", JSON)
def defects(given: Namespace) -> None:
    """List the faults that --vllm-defect gives the simulator."""
    from pytest_vllm.report.tables import print_rows
    from pytest_vllm.sim.defects.registry import all_defects

    rows = [
        {
            "name": one.name,
            "area": one.area,
            "catches": list(one.catches),
            "faults": list(one.faults),
            "summary": one.summary,
        }
        for one in all_defects().values()
    ]
    print_rows(rows, as_json=given.json, hidden=("catches", "faults"))


@command("version")
def version(_: Namespace) -> None:
    """Print the versions to quote in a bug report."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    from pytest_vllm import facts
    from pytest_vllm.locate import own_version

    print(f"pytest-vllm {own_version()}")
    for package in ("pytest", "openai", "docker"):
        try:
            print(f"{package} {installed(package)}")
        except PackageNotFoundError:
            print(f"{package} is not installed")
    print(f"python {sys.version.split()[0]}")
    print(f"facts of vLLM {facts.versions()[0]} to {facts.versions()[-1]}")
