"""The verdict of each client that a run saw at work: works, works with limits, does not work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.decide.verdict import Verdict
from pytest_vllm.report.text import PLAIN, Style, printable, wrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CHECK = "clients.works["
LABEL = 15


def client_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """`profile`, `id`, `client` (with its version), `steps` and `verdict` of each, in order of the results.

    Args:
        rows: results as the report's JSON has them. A client that was not there has no row.
    """
    return [
        {
            "profile": row["profile"],
            "id": row["check"].removeprefix(CHECK).removesuffix("]"),
            "client": row["observations"].get("client", ""),
            "steps": row["observations"].get("steps", ""),
            "verdict": row["observations"]["verdict"],
        }
        for row in rows
        if row["check"].startswith(CHECK)
        and row["verdict"] != Verdict.NOT_RUN
        and "verdict" in row["observations"]
    ]


def client_lines(rows: Iterable[Mapping[str, Any]], style: Style = PLAIN) -> list[str]:
    """The same for a terminal."""
    lines = [
        line
        for row in client_rows(rows)
        for line in wrap(printable(f"{row['client']} {row['verdict']}"), style.width - LABEL)[:3]
    ]
    return [f"{'clients' if not n else '':{LABEL}}{line}" for n, line in enumerate(lines)]
