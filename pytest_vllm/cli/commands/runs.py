"""Runs: judge one again, clean up after dead ones, and the programs that serve one."""

# ruff: noqa: PLC0415 - every command imports what it needs when it runs

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.cli.command import UsageError, argument, command, flag, option

if TYPE_CHECKING:
    from argparse import Namespace


@command(
    "reap",
    option(
        "--runs",
        "DIR",
        "the folder of run folders (default .vllm/runs)",
        type=Path,
        default=Path(".vllm/runs"),
    ),
    flag("--dry-run", "only say what would be removed"),
)
def reap(given: Namespace) -> int:
    """Remove what interrupted runs left behind, and nothing else."""
    from pytest_vllm.launch.reap import find_orphans
    from pytest_vllm.launch.reap import reap as remove

    orphans = find_orphans(given.runs if given.runs.is_dir() else None)
    if not orphans:
        print("nothing is left of dead runs")
        return 0
    failed = [] if given.dry_run else remove(orphans)
    for orphan in orphans:
        done = "would remove" if given.dry_run else "could not remove" if orphan in failed else "removed"
        print(f"{done} {orphan.kind} {orphan.name} (run {orphan.run_id}, {orphan.age:.0f} s old)")
    return int(bool(failed))


@command(
    "replay",
    argument("FOLDER", "the folder of a run, such as .vllm/runs/20261127-2050", type=Path),
    passes_on=True,
)
def replay(given: Namespace) -> None:
    """Judge the recordings of a run again, without a server.

    Further arguments go to pytest.
    """
    if not given.folder.is_dir():
        raise UsageError(
            f"no run folder {given.folder}: runs are kept in .vllm/runs unless --vllm-report says otherwise"
        )
    _become("pytest", f"--vllm-replay={given.folder}", *given.rest)


@command("sim", passes_on=True)
def sim(given: Namespace) -> None:
    """Run the simulator: pytest-vllm sim serve MODEL."""
    _become("pytest_vllm.sim", *given.rest)


@command("load-worker", argument("ADDRESS", "HOST:PORT, as the gate prints it"))
def load_worker(given: Namespace) -> None:
    """Run a load worker for a gate on another machine."""
    _become("pytest_vllm.measure.swarm", given.address)


def _become(module: str, *arguments: str) -> None:
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", module, *arguments])  # noqa: S606 - signals go straight to it
