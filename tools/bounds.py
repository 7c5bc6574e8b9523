"""The lowest versions that pyproject.toml allows, as a requirements file: `python -m tools.bounds [EXTRA …]`.

CI installs exactly these (`.ci/run bounds`), so that each bound is a version that was run and not a guess.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
BOUND = re.compile(r"([A-Za-z0-9._-]+)\s*>=\s*([0-9][0-9a-zA-Z.]*)")


def lowest(requirement: str) -> str:
    """`httpx>=0.27` as `httpx==0.27`. Raises ValueError on a requirement of another form."""
    found = BOUND.fullmatch(requirement.strip())
    if found is None:
        raise ValueError(
            f"{requirement!r} has no lower bound alone: write NAME>=VERSION, which CI can install"
        )
    return f"{found[1]}=={found[2]}"


def bounds(project: Mapping[str, object], extras: Iterable[str] = ()) -> list[str]:
    """The lowest version of each dependency, and of those of some extras.

    Args:
        project: the table `[project]`.
        extras: names of `[project.optional-dependencies]`. Raises KeyError on another.
    """
    required = list(project["dependencies"])  # type: ignore[call-overload]
    for extra in extras:
        required += project["optional-dependencies"][extra]  # type: ignore[index]
    return [lowest(one) for one in required]


if __name__ == "__main__":
    print("\n".join(bounds(tomllib.loads(PROJECT.read_text("utf-8"))["project"], sys.argv[1:])))
