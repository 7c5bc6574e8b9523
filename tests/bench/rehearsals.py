"""Rehearses every built-in profile on the simulator, and tells verdict and time of each.

    python -m tests.bench.rehearsals [PROFILE …]     one after the other, none may take longer than 20 s
    python -m tests.bench.rehearsals --workers 2     two at once: their times are told, and not judged

One row a profile: the verdict, seconds on the clock, and alone also CPU seconds (user and system) of the
whole run, its simulator included, for machines that do other things too. Ends with 1 when a profile is late,
or no GO that is to be one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pytest_vllm.profile.load import names

ROOT = Path(__file__).parents[2]
ALLOWED = 20.0
#: They exist to show one engine's own texts, which no rehearsal has.
SCRIPTED = "scripted"
#: Made to be refused: the same machine with what costs its speed.
REFUSED = ("h100-dummy-eager",)


def main(argv: list[str] | None = None) -> int:
    """Rehearse and print; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.rehearsals", description=__doc__)
    parser.add_argument("profiles", nargs="*", metavar="PROFILE", help="all that are built in, unless given")
    parser.add_argument("--workers", type=int, default=1, help="how many at once")
    options = parser.parse_args(argv)
    wanted = options.profiles or _built_in()
    started = time.monotonic()
    alone = options.workers == 1
    with ThreadPoolExecutor(options.workers) as pool:
        rows = list(pool.map(lambda name: _rehearse(name, alone=alone), wanted))
    slow = [name for name, _, seconds in rows if alone and seconds > ALLOWED]
    wrong = [name for name, answer, _ in rows if answer != _wanted(name)]
    late = f", {len(slow)} above {ALLOWED:g} s" if alone else ""
    right = f"{len(rows) - len(wrong)} answered as they are to be"
    print(f"\n{len(rows)} profiles, {right}{late}; {time.monotonic() - started:.0f} s")
    return 1 if slow or wrong else 0


def _wanted(name: str) -> str:
    return "NO-GO" if name in REFUSED else "GO"


def _built_in() -> list[str]:
    with tempfile.TemporaryDirectory() as nobodys:
        return [one.name for one in names(Path(nobodys)) if SCRIPTED not in one.name]


def _rehearse(name: str, *, alone: bool) -> tuple[str, str, float]:
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
    cpu = f" {sum(after[2:4]) - sum(before[2:4]):6.1f} s CPU" if alone else ""
    answer = told["answer"]["answer"] if told else f"exit status {run.returncode}"
    verdicts = [one["verdict"] for one in told.get("results", ())]
    decided = f"{verdicts.count('pass'):5} pass {verdicts.count('undecided'):3} undecided"
    row = f"{name:24} {answer:10} {seconds:6.1f} s{cpu}  {decided}"
    why = [] if answer == _wanted(name) else run.stdout.splitlines()[-12:]
    print("\n    ".join([row, *why]), flush=True)
    return name, answer, seconds


if __name__ == "__main__":
    sys.exit(main())
