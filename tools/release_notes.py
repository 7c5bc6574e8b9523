"""What the changelog says of a version: `python -m tools.release_notes 0.2.0`. No entries, no release."""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


def notes(changelog: str, version: str) -> str:
    """The section `## [VERSION] - DATE`, without its heading. Raises ValueError where it is missing or empty.

    A candidate such as 0.2.0rc1 has the notes of what it is to become, or what is unreleased.
    """
    sections = dict(
        re.findall(r"^## \[([^]]+)\][^\n]*\n(.*?)(?=^## \[|\Z)", changelog, re.DOTALL | re.MULTILINE)
    )
    final, candidate = re.fullmatch(r"(.*?)((?:a|b|rc)\d+)?", version).groups()  # type: ignore[union-attr]
    names = [version, final, "Unreleased"] if candidate else [version]
    text = next((sections[name].strip() for name in names if sections.get(name, "").strip()), "")
    if not text:
        raise ValueError(
            f"CHANGELOG.md has no entries under ## [{version}]: write what changed, then tag again"
        )
    return text


if __name__ == "__main__":
    try:
        print(notes(CHANGELOG.read_text("utf-8"), sys.argv[1]))
    except ValueError as error:
        sys.exit(f"release_notes: {error}")
