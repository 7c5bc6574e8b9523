"""The same gate several times: verdicts that differ between runs are nobody's fault but the checks'.

    python -m tests.real.repeat --runs 5 --vllm-profile=cpu-smollm2

Everything but `--runs` is handed to pytest. Runs are made one after the other, each with a server of its own.
Prints every check whose verdict is not the same in all; the exit status says whether there was one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.real.gate import GateRun, run_gate

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT = ("--vllm-profile=cpu-smollm2",)


def differing(runs: Sequence[GateRun]) -> dict[str, list[str]]:
    """Check -> its verdict in each run, where these are not one and the same; `absent` where it has none."""
    checks = sorted({check for run in runs for check in run.verdicts})
    rows = {check: [run.verdicts.get(check, "absent") for run in runs] for check in checks}
    return {check: said for check, said in rows.items() if len(set(said)) > 1}


def main(argv: Sequence[str] | None = None) -> int:
    """Run, compare and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.real.repeat", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    own, options = parser.parse_known_args(argv)
    runs = []
    for number in range(own.runs):
        with tempfile.TemporaryDirectory(prefix="pytest-vllm-repeat-") as folder:
            runs.append(run_gate(Path(folder), *(options or DEFAULT)))
        print(f"run {number + 1} of {own.runs}: exit {runs[-1].exit}", flush=True)
        if not runs[-1].report:
            print("no report was written, so nothing can be compared", file=sys.stderr)
            return 2
    found = differing(runs)
    for check, said in found.items():
        print(f"{check}: {', '.join(said)}")
    print(f"{own.runs} runs, {len(runs[0].verdicts)} checks, {len(found)} with differing verdicts")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
