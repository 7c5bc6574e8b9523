"""A sweep over servers: the gate itself for each parser, on a scripted server that is started for it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from pytest_vllm.scripted.grammar import Call, Script
from tools.sweep.alone_sweep import mark
from tools.sweep.rows import Outcome, Pair, Row, unpromised

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_OUTCOMES: dict[str, Outcome] = {
    "pass": "passed",
    "fail": "failed",
    "waived": "failed",
    "undecided": "undecided",
}
#: What a waiver says before what was observed: see `waivers.apply_waivers`.
_WAIVED = re.compile(r"^.*? \([^()\s]+, until \d{4}-\d\d-\d\d\); ", re.DOTALL)


def served(pair: Pair, version: str, folder: Path, *, python: str = "", image: str = "") -> Row:
    """The row of two parsers from a gate's report.

    Args:
        pair: the parsers.
        version: of vLLM.
        folder: keeps the run and its report.
        python: the Python that has vLLM; empty to start a container.
        image: the container's; empty with a Python.
    """
    profile = "cpu-scripted-process" if python else "cpu-scripted"
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--vllm-profile={profile}"),
        *([f"--vllm-tool-parser={pair.tool}"] if pair.tool else []),
        f"--vllm-reasoning-parser={pair.reasoning or 'none'}",
        *("--vllm-check=scripted", f"--vllm-report={folder}"),
        *([f"--vllm-image={image}"] if image else []),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, **({"VLLM_PYTHON": python} if python else {})}
    began = time.monotonic()
    with (folder / "output.txt").open("wb") as output:
        status = subprocess.run(  # noqa: S603 - our own command
            command, cwd=folder, env=env, stdout=output, stderr=subprocess.STDOUT, check=False
        ).returncode
    row = Row(pair, version, "server", mark=mark(pair))
    reports = sorted(folder.glob("runs/*/report.json"))
    if not reports:
        told = (folder / "output.txt").read_text("utf-8", "replace").strip().splitlines()[-1:]
        row.broken = f"no report, exit status {status}: {''.join(told)[:200]}"
        return row
    fill(row, json.loads(reports[-1].read_text("utf-8")))
    row.cases_s = round(time.monotonic() - began - row.boot_s, 1)
    return row


def fill(row: Row, report: Mapping[str, Any]) -> None:
    """What a report says of the scripted checks."""
    for server in report["servers"]:
        row.boot_s = round(server["boot"][-1]["at"], 1) if server["boot"] else 0.0
    for failure in report["boot_failures"]:
        row.broken = str(failure.get("cause") or failure)[:300]
    for result in report["results"]:
        outcome = _OUTCOMES.get(result["verdict"], "failed" if result["verdict"] == "advisory" else None)
        # a stale waiver is reported by the sweep itself, from the row
        if outcome is None or result["level"] != "MUST" or result["check"].startswith("waiver."):
            continue
        key, said = result["check"], ""
        if outcome == "failed" and (script := _said(key)) and (missing := unpromised(row.pair.tool, script)):
            outcome, said = "unpromised", f"not promised: {missing}; "
        row.outcomes[key] = outcome
        if outcome != "passed":
            row.evidence[key] = said + _WAIVED.sub("", result["reason"], count=1)


def _said(check: str) -> Script | None:
    """The script of a check over one case; None for other checks."""
    from pytest_vllm.locate import case_file  # noqa: PLC0415 - few checks fail

    name, _, case = check.removesuffix("]").partition("[")
    if name == "scripted.turn.again" or name.startswith("scripted.stop."):
        return Script(None, "text", (Call("call", {}),))
    if not name.startswith(("scripted.answer.", "scripted.response.", "scripted.message.")):
        return None
    for row in json.loads(case_file("scripted-answers").read_text("utf-8")):
        if row["id"] == case:
            calls = tuple(Call(one["name"], one["arguments"]) for one in row["calls"])
            return Script(row.get("thinking"), row["content"], calls, row["after"])
    return None
