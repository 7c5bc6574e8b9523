"""What an unrelated pytest run pays for having pytest-vllm installed: `python -m tests.bench.unasked`.

Runs a folder with one test 11 times with the plugin and 11 times with `-p no:vllm`, in turn, and prints the
CPU time of each in milliseconds. Only pytest and this plugin are loaded: others would add more noise than the
plugin takes.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from tests import unasked

LIMIT = 50


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.unasked", description=__doc__)
    parser.add_argument("--runs", type=int, default=11, help="of each (default 11)")
    runs = parser.parse_args().runs
    kinds = {"with": unasked.ALONE, "without": unasked.NO_PLUGIN}
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unasked.lay_out(folder)
        for arguments in kinds.values():  # the first run of each writes compiled files
            unasked.run(folder, *arguments)
        for _ in range(runs):
            for kind, arguments in kinds.items():
                times[kind].append(1000 * unasked.run(folder, *arguments))
    for kind, found in times.items():
        each = " ".join(f"{one:.0f}" for one in sorted(found))
        print(f"{kind:8} {each}  median {statistics.median(found):.0f} ms")
    more = statistics.median(times["with"]) - statistics.median(times["without"])
    print(f"the plugin takes {more:.0f} ms of CPU more; {LIMIT} are allowed")


if __name__ == "__main__":
    main()
