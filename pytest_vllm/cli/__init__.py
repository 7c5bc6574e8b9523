"""`pytest-vllm`: what there is beside the gate itself, which is pytest.

`entry.py` finds and runs a command, `command.py` says what one is, and each file of `commands/` holds some:
to add one, write a function under `@command` into a file there. Commands import what they need as they run,
so that `--help` is there at once.
"""

from pytest_vllm.cli.entry import main

__all__ = ["main"]
