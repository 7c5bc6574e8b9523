"""One page that leads to the report of every run: `index.html` beside the folder of the runs.

A line for each run and profile is kept in a file of its own, so that nothing large is read again. A run whose
folder was removed stays, without its link.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.report.html import rendered
from pytest_vllm.report.write import write

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PAGE, LINES, REPORT = "index.html", "runs.jsonl", "report.html"
#: Lines that are kept, the newest.
MOST = 500


def add(folder: Path, extract: Mapping[str, Any]) -> Path:
    """Add a run to the page of a folder, and write the page anew. Raises OSError.

    Args:
        folder: where runs and reports lie, `.vllm`.
        extract: of the run, as `compare.extract` assembles it.
    """
    kept = [one for one in _kept(folder) if one["run"] != extract["run"]["id"]]
    rows = [*kept, *_rows(extract)][-MOST:]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write(folder / LINES, "".join(f"{json.dumps(row)}\n" for row in rows))
    return write(folder / PAGE, page(folder, rows))


def page(folder: Path, rows: list[dict[str, Any]]) -> str:
    """The page of these rows, the newest run first."""
    linked = [{**row, "link": _link(folder, row["run"])} for row in reversed(rows)]
    return rendered("overview.html.j2", {"rows": linked, "runs": len({row["run"] for row in rows})})


def _link(folder: Path, run: str) -> str:
    place = f"runs/{run}/{REPORT}"
    return place if (folder / "runs" / run).is_dir() else ""


def _rows(extract: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    run = extract["run"]
    for profile, part in extract["profiles"].items():
        identity = part.get("identity", {})
        yield {
            "run": run["id"],
            "started": run["started"],
            "seconds": run["seconds"],
            "tier": "partial" if run["partial"] else run["tier"],
            "profile": profile,
            "answer": part["answer"],
            "why": part["why"],
            "version": identity.get("version", ""),
            "model": identity.get("model", ""),
            "simulated": bool(identity.get("simulated")),
        }


def _kept(folder: Path) -> list[dict[str, Any]]:
    """The rows that can be read; one that is broken is left out, and the page is made all the same."""
    try:
        lines = (folder / LINES).read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [row for line in lines if (row := _row(line)) is not None]


def _row(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.keys() >= FIELDS else None


FIELDS = frozenset(
    ("run", "started", "seconds", "tier", "profile", "answer", "why", "version", "model", "simulated")
)
