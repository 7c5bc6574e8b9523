"""The gate as a person runs it, on a broken simulator: it says NO-GO, and where.

    python -m tests.defects.gates --runs 40
    python -m tests.defects.gates --runs 0 --workers 8     every defect, on 16 cores

Each is printed as it ends; the exit status says whether all were caught.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import re
import sys
from concurrent.futures import as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.sim.defects.registry import Defect, all_defects
from tests.defects.matrix import ELSEWHERE
from tests.defects.outcome import BOOT_AREA
from tests.defects.room import own_pool, room
from tests.real.gate import run_gate

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_GO, NO_BOOT = 1, 20
#: The head of a failing check in what the gate prints; the likeliest culprit comes first.
HEADING = re.compile(r"^_+ (\S+) _+$\nMUST ", re.MULTILINE)
#: Which defects a sample holds; fixed, so that a failure can be repeated.
SEED = 20


@dataclass(frozen=True)
class Gate:
    """How one run ended.

    Args:
        defect: what was broken.
        exit: the exit status; None when the run hung.
        first: the area of the first failing check; empty when none failed.
    """

    defect: Defect
    exit: int | None
    first: str

    @property
    def caught(self) -> bool:
        """Whether the exit status is the one for this kind of defect."""
        return self.exit == (NO_BOOT if self.defect.area == BOOT_AREA else NO_GO)

    @property
    def diagnosed(self) -> bool:
        """Whether the first failure names the area; the block of a failed start does."""
        return self.defect.area in (BOOT_AREA, self.first)


def sample(runs: int) -> list[Defect]:
    """So many defects at random, at least one that does not boot, one that is live, one that rewrites."""
    known = [one for one in all_defects().values() if one.area not in ELSEWHERE]
    drawn = random.Random(SEED).sample(known, len(known))  # noqa: S311 - a sample, no secret
    classes = (
        [one for one in drawn if one.area == BOOT_AREA],
        [one for one in drawn if one.area != BOOT_AREA and not one.rewrites],
        [one for one in drawn if one.rewrites],
    )
    first = [group[0] for group in classes]
    return [*first, *(one for one in drawn if one not in first)][:runs]


def gate(defect: Defect) -> Gate:
    """Run `pytest --vllm-profile=… --vllm-defect=…` in a folder of its own."""
    with room(f"gate-{defect.name}") as folder:
        folder.mkdir()
        options = (f"--vllm-profile={defect.profile}", "--vllm-launcher=sim", f"--vllm-defect={defect.name}")
        with contextlib.redirect_stdout(io.StringIO()):
            run = run_gate(folder, *options)
    suites = {row["check"]: str(row["suite"]) for row in run.report.get("results", ())}
    first = HEADING.search(run.text)
    return Gate(defect, run.exit, suites.get(first[1], "") if first else "")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a sample and print it; the exit status says whether all were caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.defects.gates", description=__doc__)
    parser.add_argument("--runs", type=int, default=40, help="how many defects; 0: every one")
    parser.add_argument("--workers", type=int, default=1, help="gates at once; a gate takes two cores")
    options = parser.parse_args(argv)
    runs = []
    with own_pool(options.workers) as pool:
        tasks = {pool.submit(_end_of, one.name): one for one in sample(options.runs or len(all_defects()))}
        for task in as_completed(tasks):
            runs.append(last := Gate(tasks[task], *task.result()))
            state = "caught" if last.caught else "MISSED"
            where = last.first or "no area"
            name, area = last.defect.name, last.defect.area
            print(f"{state}, exit {last.exit}, first in {where}  {name} ({area})", flush=True)
    caught, diagnosed = sum(one.caught for one in runs), sum(one.diagnosed for one in runs)
    print(f"{len(runs)} gates on broken simulators: {caught} caught, {diagnosed} diagnosed")
    return 0 if caught == len(runs) else 1


def _end_of(name: str) -> tuple[int | None, str]:
    # a defect holds functions, which do not travel between processes
    ended = gate(all_defects()[name])
    return ended.exit, ended.first


if __name__ == "__main__":
    sys.exit(main())
