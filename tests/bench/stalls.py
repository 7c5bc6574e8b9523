"""The gate on a machine that stands still at times: it never accuses a healthy server for it.

    python -m tests.bench.stalls --runs 6                          the simulator, the gate frozen now and then
    python -m tests.bench.stalls --frozen server --seed 7
    python -m tests.bench.stalls --option=--vllm-profile=cpu-scripted --every 25

A process is frozen by SIGSTOP for some seconds at moments drawn at random, as a virtual machine does whose
processor is taken away. Any answer but GO and UNDECIDED is an accusation, and so is a MUST check that failed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from collections.abc import Sequence

GATE = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider")
#: Answers that accuse nobody.
HARMLESS = ("GO", "UNDECIDED")
#: Seconds of a run, at most.
LONGEST = 900.0


@dataclass(frozen=True)
class Stalled:
    """How a run ended whose processes stood still.

    Args:
        seed: what its moments were drawn from.
        spans: second of the run, and for how long something was frozen.
        answer: of the gate; empty when it left no report.
        accused: reasons of the MUST checks that failed, by check.
        undecided: and of those that could not be decided.
        text: what it printed.
    """

    seed: int
    spans: tuple[tuple[float, float], ...]
    answer: str
    accused: dict[str, str]
    undecided: dict[str, str]
    text: str

    @property
    def fair(self) -> bool:
        """Whether nobody was accused."""
        return self.answer in HARMLESS and not self.accused

    def __str__(self) -> str:
        """A line, and one for each accusation."""
        frozen = ", ".join(f"{length:.0f} s at {at:.0f}" for at, length in self.spans)
        head = f"seed {self.seed}: {self.answer or 'no report'}; frozen {frozen or 'never'}"
        told = {**self.accused, **dict(list(self.undecided.items())[:6])}
        words = {check: "FAIL" if check in self.accused else "open" for check in told}
        rows = [f"    {words[check]} {check}: {why}" for check, why in told.items()]
        return "\n".join([f"{head}; {len(self.accused)} accused, {len(self.undecided)} undecided", *rows])


def victims(gate: psutil.Process, frozen: str) -> list[psutil.Process]:
    """The processes that may be frozen: the gate itself, or what it started."""
    with suppress(psutil.Error):
        return [gate] if frozen == "gate" else gate.children(recursive=True)
    return []


@dataclass(frozen=True)
class Plan:
    """What is run, and how it is disturbed.

    Args:
        options: of the gate.
        frozen: the gate, or what it started.
        every: seconds from one stall to the next, on average.
        longest: seconds of the longest stall.
    """

    options: Sequence[str]
    frozen: str
    every: float
    longest: float


def run(plan: Plan, seed: int, folder: Path) -> Stalled:
    """One gate whose moments are drawn from this seed."""
    draw = random.Random(seed)  # noqa: S311 - moments
    out = folder / f"{seed}.txt"
    report = folder / str(seed)
    spans = []
    began = time.monotonic()
    with out.open("wb") as said:
        process = subprocess.Popen(
            [*GATE, *plan.options, f"--vllm-report={report}"],
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
        gate = psutil.Process(process.pid)
        while process.poll() is None and time.monotonic() - began < LONGEST:
            with suppress(subprocess.TimeoutExpired):
                process.wait(draw.expovariate(1 / plan.every))
                break
            length = draw.uniform(plan.longest / 3, plan.longest)
            who = victims(gate, plan.frozen)
            for one in who:
                with suppress(psutil.Error):
                    one.send_signal(signal.SIGSTOP)
            spans.append((time.monotonic() - began, length))
            time.sleep(length)
            for one in who:
                with suppress(psutil.Error):
                    one.send_signal(signal.SIGCONT)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(60)
    found = sorted(report.glob("runs/*/report.json"))
    body: dict[str, Any] = json.loads(found[-1].read_text("utf-8")) if found else {}
    musts = [one for one in body.get("results", ()) if one["level"] == "MUST"]
    reasons = {
        verdict: {one["check"]: one["reason"] for one in musts if one["verdict"] == verdict}
        for verdict in ("fail", "undecided")
    }
    answer = body["answer"]["answer"] if body else ""
    return Stalled(
        seed, tuple(spans), answer, reasons["fail"], reasons["undecided"], out.read_text("utf-8", "replace")
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Print each run; 1 when a healthy server was accused."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.stalls", description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    parser.add_argument("--frozen", choices=("gate", "server"), default="gate")
    parser.add_argument("--every", type=float, default=15.0, help="seconds between two stalls, on average")
    parser.add_argument("--longest", type=float, default=18.0, help="seconds of the longest stall")
    parser.add_argument("--option", action="append", help="of the gate; the simulator's profile unless given")
    asked = parser.parse_args(argv)
    plan = Plan(asked.option or ["--vllm-profile=sim"], asked.frozen, asked.every, asked.longest)
    accused = 0
    with tempfile.TemporaryDirectory(prefix="pytest-vllm-stalls-") as folder:
        for seed in range(asked.seed, asked.seed + asked.runs):
            row = run(plan, seed, Path(folder))
            accused += not row.fair
            print(row, flush=True)
            if not row.answer:
                print(row.text[-2000:])
    print(f"{asked.runs} runs; in {accused} a healthy server was accused; load {os.getloadavg()[0]:.1f}")
    return int(accused > 0)


if __name__ == "__main__":
    sys.exit(main())
