"""The lowest versions that pyproject.toml allows, as constraints for pip: `python -m tools.lower_bounds`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
_LOWER = re.compile(r"([A-Za-z0-9._-]+)\s*>=\s*([0-9][0-9.]*)")


def constraints() -> list[str]:
    """`name==version` of every dependency. Raises ValueError for one without a lower bound."""
    needed: list[str] = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["dependencies"]
    found = []
    for text in needed:
        bound = _LOWER.match(text)
        if bound is None:
            raise ValueError(f"{PYPROJECT.name}: {text!r} has no lower bound: write it like httpx>=0.27")
        found.append(f"{bound[1]}=={bound[2]}")
    return found


if __name__ == "__main__":
    print("\n".join(constraints()))
