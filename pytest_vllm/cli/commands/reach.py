"""Reach: what a run asked of all that can be asked."""

# ruff: noqa: PLC0415 - every command imports what it needs when it runs

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.cli.command import JSON, UsageError, argument, command

if TYPE_CHECKING:
    from argparse import Namespace

RUNS = Path(".vllm/runs")


@command(
    "reach",
    argument("RUN", "the folder of a run (default: the latest in .vllm/runs)", type=Path, nargs="?"),
    JSON,
)
def reach(given: Namespace) -> None:
    """Report what a run exercised of the requests that vLLM takes.

    For each server of the run: the request fields that were sent and those that never were, the largest
    sizes, the values of each dimension that no request had, and how many pairs of values came together.
    """
    from pytest_vllm.report.reach import reach_of
    from pytest_vllm.report.reachtext import reach_lines
    from pytest_vllm.report.tables import print_json
    from pytest_vllm.wire.store import RecordingStore

    folder = given.run or _latest()
    made: dict[str, Any] = {}
    for name, server in _servers(folder).items():
        store = RecordingStore(folder / name / "recordings")
        recordings = [store.get(key) for key in store.keys()]  # noqa: SIM118 - a store is no mapping
        made[name] = reach_of(recordings, (server.get("server") or {}).get("version") or "")
    if given.json:
        print_json({name: one.plain() for name, one in made.items()})
        return
    for name, one in made.items():
        print(f"{name}: ", end="")
        print("\n".join(reach_lines(one)))


def _latest() -> Path:
    runs = sorted(path.parent for path in RUNS.glob("*/run.json")) if RUNS.is_dir() else []
    if not runs:
        raise UsageError(f"no run lies in {RUNS}: name the folder of one")
    return runs[-1]


def _servers(folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / "run.json"
    if not path.is_file():
        raise UsageError(f"{folder} is not the folder of a run: it holds no run.json")
    try:
        servers = json.loads(path.read_text("utf-8"))["servers"]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is damaged ({error!r}): name the folder of another run") from None
    if not isinstance(servers, dict) or not servers:
        raise UsageError(f"{path} names no server: nothing was recorded in that run")
    return servers
