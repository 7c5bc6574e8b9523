"""Runs of the simulator with five defects, as their answers were recorded once: fixed clock, fixed ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.decide.verdict import Family, Level, Result, Verdict
from pytest_vllm.wire.recording import load
from tests.golden.sample_parts import record, result, run_of, server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.report.record import RunRecord

KEPT: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "five-defects.json").read_text("utf-8"))


def broken(name: str) -> RunRecord:
    """The run of a simulator that has this defect."""
    kept = KEPT[name]
    passes = [
        result(f"{area}.fact-{place}", area=area, exchanges=tuple(keys))
        for place, (area, keys) in enumerate(kept["passes"])
    ]
    options = f"--vllm-profile=sim --vllm-defect={name}"
    run = run_of(server(), *map(load, kept["recordings"]), options=options)
    return record({"sim": run}, [*passes, *map(_failing, kept["results"])])


def _failing(row: Mapping[str, Any]) -> Result:
    return Result(
        check=row["check"],
        level=Level(row["level"]),
        family=Family(row["family"]),
        verdict=Verdict(row["verdict"]),
        fact=row["fact"],
        reason=row["reason"],
        area=row["area"],
        exchanges=tuple(row["exchanges"]),
        profile="sim",
    )
