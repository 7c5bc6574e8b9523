"""How often a server of the same version that is slower is found, and how often an equal one is accused.

    python -m tests.bench.slower --runs 20                 10 % slower, and as many runs of equal servers
    python -m tests.bench.slower --runs 5 --share 0.05     5 % slower

Each run is `pytest --vllm-url=NEW --vllm-against-url=OLD` on two simulators that decode at a fixed pace.
It prints what every run said of decoding, the ratio with its interval and the seconds of the whole run.
Other work on the machine disturbs both servers alike: it costs findings, not truth.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import time
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.inprocess import Simulated
from tests.defects.room import own_room, room
from tests.real.gate import run_gate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: Seconds a token of the older server takes.
STEP_S = 0.01
SERVE = ("sim-model", "--max-num-seqs", "8", "--max-model-len", "4096")
PROFILE = 'extends = "sim"\n[measure]\nbudget = "{}s"\n'
LOAD, FIGURE = "throughput.decode", "decode-tok-s"
#: Seconds of measuring within which it is to be found.
BUDGET_S = 80


def main(argv: Sequence[str] | None = None) -> int:
    """Run and count; the exit status says whether every slower server was found and no equal one accused."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.slower", description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="of each kind")
    parser.add_argument("--share", type=float, default=0.1, help="how much slower the newer server decodes")
    parser.add_argument("--budget", type=int, default=BUDGET_S, help="seconds of measuring at most")
    options = parser.parse_args(argv)
    found = accused = 0
    with own_room():
        for number in range(1, options.runs + 1):
            found += _said("slower", number, options.share, options.budget) == "slower"
            accused += _said("equal", number, 0.0, options.budget) in ("slower", "faster")
    print(
        f"{options.runs} runs each: {options.share:.0%} slower found {found}, equal accused {accused} times"
    )
    return 0 if found == options.runs and not accused else 1


def _said(kind: str, number: int, share: float, budget: int) -> str:
    """What one run says of decoding; empty when it does not know."""
    started = time.monotonic()
    with room(f"slower-{number}") as folder:
        report = _against(folder, STEP_S, STEP_S * (1 + share), budget)
    rows = {row["figure"]: row for row in report.get("against", {}).get("speeds", ())}
    row = rows.get(FIGURE, {})
    ratio = ", ".join(f"{name} {value}" for name, value in (row.get("ratio") or {}).items())
    change = str(row.get("change", "not measured"))
    print(
        f"{kind} {number}: {change or 'no difference'} ({ratio}), {time.monotonic() - started:.0f} s",
        flush=True,
    )
    return change


def _against(folder: Path, older_s: float, newer_s: float, budget: int) -> dict[str, Any]:
    (folder / "vllm-profiles").mkdir(parents=True)
    (folder / "vllm-profiles" / "paced.toml").write_text(PROFILE.format(budget), "utf-8")
    with (
        Simulated([*SERVE, "--sim-step", str(older_s)]) as older,
        Simulated([*SERVE, "--sim-step", str(newer_s)]) as newer,
        contextlib.redirect_stdout(io.StringIO()),
    ):
        urls = (f"--vllm-url={newer.url}", f"--vllm-against-url={older.url}")
        return run_gate(folder, "--vllm-profile=paced", *urls, f"--vllm-check={LOAD}").report


if __name__ == "__main__":
    sys.exit(main())
