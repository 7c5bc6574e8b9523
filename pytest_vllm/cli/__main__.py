"""`python -m pytest_vllm.cli`."""

import sys

from pytest_vllm.cli.entry import main

sys.exit(main())
