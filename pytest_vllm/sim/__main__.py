"""`python -m pytest_vllm.sim serve MODEL …`: a simulated `vllm serve`."""

import sys

from pytest_vllm.sim.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
