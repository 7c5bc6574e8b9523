"""What an unrelated pytest run pays for having pytest-vllm installed: `python -m tests.bench.unasked`.

Runs a folder with one test 11 times with the plugin and 11 times with `-p no:vllm`, in turn, and prints the
CPU time of each in milliseconds. Only pytest and this plugin are loaded: others would add more noise than the
plugin takes.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT, SECONDS = 50, 60
FILES = {"pytest.ini": "[pytest]\n", "test_one.py": "def test_one():\n    assert 1 + 1 == 2\n"}
#: No other plugin of the environment, and ours or none.
WITHOUT = ("--disable-plugin-autoload",)
KINDS = {"with": (*WITHOUT, "-p", "pytest_vllm.plugin"), "without": WITHOUT}


def run(folder: Path, *arguments: str) -> float:
    """Run pytest there; returns its CPU time in seconds, user and system. Raises where it does not pass."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    subprocess.run(command, cwd=folder, env=environ, check=True, capture_output=True, timeout=SECONDS)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.unasked", description=__doc__)
    parser.add_argument("--runs", type=int, default=11, help="of each (default 11)")
    runs = parser.parse_args().runs
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name, text in FILES.items():
            (folder / name).write_text(text, "utf-8")
        for arguments in KINDS.values():  # the first run of each writes compiled files
            run(folder, *arguments)
        for _ in range(runs):
            for kind, arguments in KINDS.items():
                times[kind].append(1000 * run(folder, *arguments))
    for kind, found in times.items():
        each = " ".join(f"{one:.0f}" for one in sorted(found))
        print(f"{kind:8} {each}  median {statistics.median(found):.0f} ms")
    more = statistics.median(times["with"]) - statistics.median(times["without"])
    print(f"the plugin takes {more:.0f} ms of CPU more; {LIMIT} are allowed")


if __name__ == "__main__":
    main()
