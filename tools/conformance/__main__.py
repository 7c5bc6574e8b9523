"""Publish what does not hold in versions of vLLM: `python -m tools.conformance gate 0.32.0 …`.

    gate VERSION…   run the gate without loads on each version's image, one after the other; keep; write pages
    keep FOLDER…    keep run folders, or extracts, that were made elsewhere; write pages
    pages           write the pages from what is kept (tools/conformance/runs)

Images: `python -m tests.real.image --vllm VERSION`. What a busy machine kept from being
judged is counted on the page, not guessed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.face.catalogue import entries
from pytest_vllm.report.compare.extract import ExtractError
from tools.conformance.keep import every, keep
from tools.conformance.pages import pages
from tools.site.links import DOCS

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Areas that load the server for minutes, and whose answers are the machine's.
LOADING = ("throughput", "performance")
PROFILE = """\
extends = "cpu-smollm2"
description = "vLLM {version} on the CPU"

[server]
image = "pytest-vllm/cpu:{version}"

[record]
timeout = "2m"

[expect]
version = "{version}"
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; exit status 0, or 4 with one line on what is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.conformance", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["gate", "keep", "pages"])
    parser.add_argument("names", nargs="*", metavar="VERSION|FOLDER")
    parser.add_argument("--area", action="append", default=[], help="gate: ask only these areas of checks")
    asked = parser.parse_args(arguments)
    try:
        for name in asked.names:
            sys.stdout.write(f"kept {gate(name, asked.area) if asked.what == 'gate' else keep(Path(name))}\n")
        written = write(DOCS)
    except (ExtractError, OSError) as problem:
        sys.stderr.write(f"conformance: {problem}\n")
        return 4
    sys.stdout.write(f"{len(written)} pages below {DOCS}\n")
    return 0


def gate(version: str, only: Sequence[str] = ()) -> Path:
    """Run the gate on a version's image and keep its extract. Raises ExtractError where there is none."""
    with tempfile.TemporaryDirectory(prefix="pytest-vllm-conformance-") as folder:
        (Path(folder) / "conformance.toml").write_text(PROFILE.format(version=version), "utf-8")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "--vllm-profile=conformance.toml",
        ]
        subprocess.run([*command, *areas(only)], cwd=folder, check=False)  # noqa: S603 - our own command
        runs = sorted((Path(folder) / ".vllm" / "runs").glob("*"))
        if not runs:
            raise ExtractError(f"the gate on vLLM {version} left no run")
        return keep(runs[-1])


def areas(only: Sequence[str] = ()) -> list[str]:
    """Options that ask for these areas, or for every area of the gate but those that load the server."""
    every = {one.spec.id.partition(".")[0] for one in entries() if one.spec.tier in ("smoke", "gate")}
    return [f"--vllm-check={area}" for area in sorted(only or every - set(LOADING))]


def write(docs: Path) -> list[str]:
    """Write all pages, remove those that are not made any more. Returns names. Raises ExtractError."""
    made = dict(pages(every()))
    (docs / "conformance").mkdir(exist_ok=True)
    for name, text in made.items():
        (docs / name).write_text(text, "utf-8")
    for path in (docs / "conformance").glob("*.md"):
        if f"conformance/{path.name}" not in made:
            path.unlink()
    return list(made)


if __name__ == "__main__":
    sys.exit(main())
