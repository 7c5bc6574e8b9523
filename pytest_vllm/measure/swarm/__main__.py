"""One worker for the loads of another machine: what `pytest-vllm load-worker HOST:PORT` runs."""

from __future__ import annotations

import os
import sys

from pytest_vllm.measure.swarm.crew import MISSING, UNPATCHED, available


def main() -> int:
    """Work for one run; exit status 4 where it cannot."""
    if not available():
        print(f"pytest-vllm: {MISSING}", file=sys.stderr)
        return 4
    os.environ[UNPATCHED] = "1"  # before anything imports Locust
    from pytest_vllm.measure.swarm import worker  # noqa: PLC0415

    return worker.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
