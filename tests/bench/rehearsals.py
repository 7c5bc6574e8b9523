"""Rehearses every built-in profile on the simulator, and tells verdict and time of each.

Run `python -m tests.bench.rehearsals [PROFILE …]`. One row a profile: the verdict, seconds on the clock, and
CPU seconds (user and system) of the whole run, its simulator included, for machines that do other things too.
Ends with 1 when a profile is no GO or takes longer than 20 s.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pytest_vllm.profile.load import names

ROOT = Path(__file__).parents[2]
ALLOWED = 20.0
#: They exist to show one engine's own texts, which no rehearsal has.
SCRIPTED = "scripted"


def main(wanted: list[str]) -> int:
    """Rehearse and print; the exit status."""
    rows = [_rehearse(name) for name in wanted or _built_in()]
    slow = [name for name, _, seconds in rows if seconds > ALLOWED]
    no_go = [name for name, answer, _ in rows if answer != "GO"]
    print(f"\n{len(rows)} profiles, {len(rows) - len(no_go)} GO, {len(slow)} above {ALLOWED:g} s")
    return 1 if slow or no_go else 0


def _built_in() -> list[str]:
    with tempfile.TemporaryDirectory() as nobodys:
        return [one.name for one in names(Path(nobodys)) if SCRIPTED not in one.name]


def _rehearse(name: str) -> tuple[str, str, float]:
    """Name, answer, seconds; the row is printed on the way."""
    with tempfile.TemporaryDirectory(prefix="vllm-rehearsal-") as folder:
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--vllm-report={folder}"),
            *(f"--vllm-profile={name}", "--vllm-launcher=sim"),
        ]
        before, started = os.times(), time.monotonic()
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        seconds, after = time.monotonic() - started, os.times()
        report = next(Path(folder).glob("runs/*/report.json"), None)
        told = json.loads(report.read_text("utf-8")) if report else {}
    cpu = sum(after[2:4]) - sum(before[2:4])
    answer = told["answer"]["answer"] if told else f"exit status {run.returncode}"
    verdicts = [one["verdict"] for one in told.get("results", ())]
    decided = f"{verdicts.count('pass'):5} pass {verdicts.count('undecided'):3} undecided"
    print(f"{name:24} {answer:10} {seconds:6.1f} s {cpu:6.1f} s CPU  {decided}", flush=True)
    for line in [] if answer == "GO" else run.stdout.splitlines()[-12:]:
        print(f"    {line}", flush=True)
    return name, answer, seconds


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
