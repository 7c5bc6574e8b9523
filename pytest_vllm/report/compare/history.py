"""A profile's runs over time: a row for each, and where its figures changed. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_vllm.report.compare.changes import changes
from pytest_vllm.report.compare.extract import spread
from pytest_vllm.report.compare.identity import other_machine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Speeds of loads that are followed, the ones that say most first.
FOLLOWED = ("decode-tok-s", "aggregate-tok-s", "prefill-tok-s", "ttft")
#: Columns of speeds in the table.
MOST_COLUMNS = 3


def rows(runs: Sequence[Mapping[str, Any]], profile: str) -> list[dict[str, Any]]:
    """One row for each run, oldest first: when, which vLLM, the answer, counts, figures, and marks.

    `mark` is empty, or says why the figures of a run are not those of the others: another machine, another
    model, a part of the checks.
    """
    found = []
    newest = next((one for one in reversed(runs) if "identity" in one["profiles"][profile]), None)
    for run in runs:
        part = run["profiles"][profile]
        row: dict[str, Any] = {
            "run": run["run"]["id"],
            "started": str(run["run"]["started"])[:16].replace("T", " "),
            "version": "",
            "answer": part["answer"],
            "failed": None,
            "undecided": None,
            "passed": None,
            "start": None,
            "mark": "",
            "figures": {},
        }
        if "identity" in part:
            counts = Counter(verdict for verdict, _ in spread(part).values())
            row |= {
                "version": part["identity"]["version"],
                "failed": counts["fail"],
                "undecided": counts["undecided"],
                "passed": counts["pass"],
                "start": part["boot"][-1][1] if part["boot"] else None,
                "mark": _mark(run, part, newest["profiles"][profile] if newest else part),
                "figures": _figures(part),
            }
        found.append(row)
    return found


def _mark(run: Mapping[str, Any], part: Mapping[str, Any], newest: Mapping[str, Any]) -> str:
    if part["identity"]["simulated"] != newest["identity"]["simulated"]:
        return "simulated" if part["identity"]["simulated"] else "a real server"
    if part["identity"]["model"] != newest["identity"]["model"]:
        return f"model {part['identity']['model']}"
    if other_machine(part["identity"], newest["identity"]):
        return "other machine"
    return "partial" if run["run"].get("partial") else ""


def _figures(part: Mapping[str, Any]) -> dict[str, float]:
    found = {
        f"{name} of {load}": round(figure["value"], 6)
        for load, measured in sorted(part.get("loads", {}).items())
        for name, figure in measured["figures"].items()
        if name in FOLLOWED
    }
    if "kv-cache-tokens" in part["figures"]:
        found["KV cache tokens"] = part["figures"]["kv-cache-tokens"]
    return found


def changed(table: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every change of level of a figure among the runs of the newest one's machine, and of verdicts' counts.

    `figure`, `run` (the first of the new level), `version`, `before`, `after`, `share`; `versions` that both
    sides had, before and after the change.
    """
    alike = [row for row in table if row["mark"] in ("", "partial") and row["version"]]
    names = sorted({name for row in alike for name in row["figures"]})
    series = {
        name: [(row, row["figures"][name]) for row in alike if name in row["figures"]] for name in names
    }
    starts = [(row, row["start"]) for row in alike if row["start"]]
    found = []
    for name, points in {**series, "start": starts}.items():
        for one in changes([value for _, value in points]):
            row, last = points[one.at][0], points[one.at - 1][0]
            found.append(
                {
                    "figure": name,
                    "run": row["run"],
                    "started": row["started"],
                    "before": round(one.before, 4),
                    "after": round(one.after, 4),
                    "share": round(one.share, 4),
                    "versions": [last["version"], row["version"]],
                }
            )
    return sorted(found, key=lambda one: (one["started"], one["figure"]))


def columns(table: Sequence[Mapping[str, Any]]) -> list[str]:
    """The speeds that the table shows: those that most runs have, by what they say."""
    counts = Counter(name for row in table for name in row["figures"])

    def weight(name: str) -> tuple[int, int, str]:
        figure = name.partition(" of ")[0]
        return -counts[name], FOLLOWED.index(figure) if figure in FOLLOWED else len(FOLLOWED), name

    return sorted(counts, key=weight)[:MOST_COLUMNS]
