"""Clients: which ones the gate can run, and what a run found of each."""

# ruff: noqa: PLC0415 - every command imports what it needs when it runs

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.cli.command import JSON, UsageError, argument, command, flag

if TYPE_CHECKING:
    from argparse import Namespace


@command(
    "clients",
    argument("RUN", "folders of runs (default: list the known clients)", type=Path, nargs="*"),
    flag("--markdown", "print a table for a page"),
    JSON,
)
def clients(given: Namespace) -> None:
    """List the clients that `[expect] clients` can name, or the verdict of each that runs were made with.

    A run judges the clients that its profile expects, or that `--vllm-check=clients` asks for.
    """
    from pytest_vllm.report.tables import print_rows

    rows = [row for run in given.run for row in _verdicts(run)] if given.run else _known()
    if given.markdown:
        print("\n".join(_table(rows)))
    else:
        print_rows(rows, as_json=given.json)


def _known() -> list[dict[str, Any]]:
    from pytest_vllm.locate import case_file

    rows = json.loads(case_file("clients").read_text("utf-8"))
    return [
        {
            "client": row["id"],
            "title": row["title"],
            "package": row["package"],
            "needs a context of": row.get("context", ""),
            "steps": list(row["steps"]),
        }
        for row in rows
    ]


def _verdicts(run: Path) -> list[dict[str, Any]]:
    from pytest_vllm.report.clients import client_rows

    path = run / "report.json"
    try:
        found = client_rows(json.loads(path.read_text("utf-8"))["results"])
    except FileNotFoundError:
        raise UsageError(f"{run} is not the folder of a run: it holds no report.json") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is damaged ({error!r}): name the folder of another run") from None
    if not found:
        raise UsageError(f"no client was judged in {run}: --vllm-check=clients asks for all")
    return found


def _table(rows: list[dict[str, Any]]) -> list[str]:
    names = [name for name in rows[0] if name != "id"]
    lines = [[_cell(row[name]) for name in names] for row in rows]
    return [f"| {' | '.join(line)} |" for line in (names, ["---"] * len(names), *lines)]


def _cell(value: Any) -> str:
    return (", ".join(value) if isinstance(value, list) else str(value)).replace("|", "\\|")
