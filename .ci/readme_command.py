"""Print the README's N-th command: the N-th fenced `sh` block of its first section."""  # noqa: INP001 - a script

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def commands() -> list[str]:
    """Both commands for a fresh machine, in order."""
    section = README.read_text("utf-8").split("\n## ")[1]
    return [block.strip() for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL)]


if __name__ == "__main__":
    print(commands()[int(sys.argv[1]) - 1])
