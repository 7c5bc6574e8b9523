"""What a good start says that matters all the same: slow kernels, eager mode, a cache that is too small.

The rows are data, `warnings.toml`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.launch.guarded import Shapes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class StartupWarning:
    """Something that a log says.

    Args:
        id: its row in the table.
        number: the line, counted from 1.
        line: the line itself.
        means: what it means, one sentence.
        tries: the next steps.
    """

    id: str
    number: int
    line: str
    means: str
    tries: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    id: str
    pattern: re.Pattern[str]
    means: str
    tries: tuple[str, ...]
    example: str
    source: str


@cache
def rows() -> tuple[Row, ...]:
    """The table, in order: of two that match the same line the earlier one counts."""
    table = tomllib.loads(Path(__file__).with_name("warnings.toml").read_text("utf-8"))
    return tuple(
        Row(
            row["id"],
            re.compile(row["pattern"]),
            row["means"],
            tuple(row["try"]),
            row["example"],
            row["source"],
        )
        for row in table["warning"]
    )


@cache
def _shapes() -> Shapes:
    return Shapes(row.pattern.pattern for row in rows())


def startup_warnings(lines: Iterable[str]) -> list[StartupWarning]:
    """What a log says that matters, in the order of its lines; each row once, at its first line."""
    found: dict[str, StartupWarning] = {}
    for number, line in enumerate(lines, 1):
        match = next(_shapes().fitting(line), None)
        if match is None or (row := rows()[match[0]]).id in found:
            continue
        hit = match[1]
        groups = {name: (text or "").strip() for name, text in hit.groupdict().items()}
        tries = tuple(_filled(one, groups) for one in row.tries)
        found[row.id] = StartupWarning(row.id, number, line, _filled(row.means, groups), tries)
    return list(found.values())


def _filled(text: str, groups: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda place: groups.get(place[1], place[0]), text)
