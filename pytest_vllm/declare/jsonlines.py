"""JSON that a person wrote: what is none is named with its file and line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Number and value of each line of a file, empty ones left out. Raises ValueError naming the line."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.strip():
            yield number, parsed(line, f"{path}:{number}")


def parsed(text: str, where: str) -> Any:
    """The value of a text. Raises ValueError naming the place."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{where}: not JSON: {error}") from None
