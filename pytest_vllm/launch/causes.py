"""The table of known causes, `causes.toml`."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pytest_vllm.launch.guarded import Shapes


@dataclass(frozen=True)
class Cause:
    """A known reason of a failed start.

    Args:
        id: its name in the table.
        pattern: searched in one log line; its named groups fill `means` and `tries`.
        means: what it means, one sentence.
        tries: the next steps.
        symptom: many causes show like this; only the best answer where none of them is found.
        example: a log line that matches.
        source: where the line was seen or is printed.
        lines: how many lines of the log say it.
        follows: other faults bring it about, too: it counts only when nothing unknown was raised before it.
        daemon: a container engine says it; it counts only in logs that hold no line of vLLM's.
    """

    id: str
    pattern: re.Pattern[str]
    means: str
    tries: tuple[str, ...]
    symptom: bool
    example: str
    source: str
    lines: int = 1
    follows: bool = False
    daemon: bool = False


@cache
def causes() -> tuple[Cause, ...]:
    """The table, in order: of two that match the same line the earlier one counts."""
    table = tomllib.loads(Path(__file__).with_name("causes.toml").read_text("utf-8"))
    return tuple(
        Cause(
            row["id"],
            re.compile(row["pattern"]),
            row["means"],
            tuple(row["try"]),
            row.get("symptom", False),
            row["example"],
            row["source"],
            row.get("lines", 1),
            row.get("follows", False),
            row.get("daemon", False),
        )
        for row in table["cause"]
    )


@cache
def shapes(*, ran: bool) -> tuple[tuple[Cause, ...], Shapes]:
    """The causes that a line can show, and their patterns; where a server ran, none that a daemon says."""
    own = tuple(cause for cause in causes() if not (cause.daemon and ran))
    return own, Shapes(cause.pattern.pattern for cause in own)
