"""The matrix as a page for people and a file for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.defects.outcome import causes_in_words
from tests.defects.part import SAMPLE, WIDE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.defects.outcome import Outcome

SHOWN = 3
PART = (
    "every check of its area and of those that tell whether a server lives,\nthose that it names and a fixed "
    f"sample of the others (1 of {SAMPLE}, none over more than {WIDE} exchanges);\n`--full` asks every check"
)


def write(
    outcomes: Sequence[Outcome],
    killers: Mapping[str, Sequence[str]],
    summary: str,
    folder: Path,
    *,
    full: bool = False,
) -> None:
    """Write defect-matrix.md into the folder."""
    (folder / "defect-matrix.md").write_text(_markdown(outcomes, killers, summary, full=full), "utf-8")


def _markdown(
    outcomes: Sequence[Outcome], killers: Mapping[str, Sequence[str]], summary: str, *, full: bool
) -> str:
    lines = [
        "# Checks against defects",
        "",
        f"{summary}; {causes_in_words(outcomes)}.",
        "",
        "Simulated: each row is the simulator, broken by one defect. A defect that rewrites answers is",
        "judged by every check of the suites that needs no load, one that must be booted (live) by",
        f"{'every check' if full else PART}.",
        "Made by `python -m tests.defects.matrix`; do not edit. Checks in the order of the verdict.",
        "Seconds are those of recording and judging, beside other defects on the same cores; recordings that",
        "several share are made before.",
        "",
        "| defect | area | judged by | caught by | also failing elsewhere | undecided | s |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *[_row(outcome) for outcome in outcomes],
        "",
        "## Checks and their killers",
        "",
        "| check | defects | such as |",
        "| --- | --- | --- |",
        *[f"| `{check}` | {len(names)} | {_some(names)} |" for check, names in sorted(killers.items())],
    ]
    return "\n".join(lines) + "\n"


def _row(outcome: Outcome) -> str:
    caught = "does not boot" if outcome.boot else _some(outcome.failed)
    cells = [
        f"`{outcome.defect}`",
        outcome.area,
        f"{outcome.checks}{', live' if outcome.live else ''}",
        caught or "**missed**",
        _some(outcome.unrelated),
        str(len(outcome.open)),
        f"{outcome.seconds:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in list(names)[:SHOWN])
    more = len(names) - SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
