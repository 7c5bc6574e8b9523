"""Formats of calls that stand between tags, as the grammars of parsers write them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[3] / "fixtures" / "parsers" / "tool"


def grammars() -> list[tuple[str, dict[str, Any]]]:
    """Those that write each argument as a text of its own: name, and how they write."""
    read = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.toml"))}
    return [
        (name, one["write"])
        for name, one in read.items()
        if one.get("write", {}).get("values") == "text" and "argument" in one["write"]
    ]
