"""Runs beside each other: two of them compared, a profile's history, today's failures as waivers."""

# ruff: noqa: PLC0415 - every command imports what it needs when it runs

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.cli.command import JSON, UsageError, argument, command, flag, option

if TYPE_CHECKING:
    from argparse import Namespace

REPORTS = option(
    "--reports", "DIR", "the folder of runs and history (default .vllm)", type=Path, default=Path(".vllm")
)


@command(
    "compare",
    argument("BEFORE", "a run folder, its extract.json, or PROFILE:last-good"),
    argument("AFTER", "the same, of the newer run"),
    option("--profile", "NAME", "which profile, where a run is of several"),
    option("--html", "FILE", "write the comparison as a page", type=Path),
    option("--markdown", "FILE", "write it as Markdown, - for standard output", type=Path),
    flag("--all", "print differences that are for information too"),
    JSON,
    REPORTS,
)
def compare(given: Namespace) -> int:
    """Compare two runs of one deployment: what breaks clients, what behaves otherwise, what is slower.

    Exit status: 0 when nothing breaks clients, 1 when something does, 4 when the runs cannot be read or
    compared. Behaviour and speed are reported and do not change it.
    """
    from pytest_vllm.compare.comparison import NotComparableError
    from pytest_vllm.compare.comparison import compare as compared
    from pytest_vllm.report.compared import markdown, text
    from pytest_vllm.report.tables import print_json

    before, name = _extract(given.before, given)
    after, other = _extract(given.after, given)
    profiles = _profiles(before, after, given.profile or name or other)
    try:
        document = compared(before, after, profiles)
    except NotComparableError as error:
        raise UsageError(str(error)) from None
    if given.html:
        from pytest_vllm.report.compared_page import page

        given.html.write_text(page(document), "utf-8")
    if given.markdown and str(given.markdown) != "-":
        given.markdown.write_text(markdown(document), "utf-8")
    if given.json:
        print_json(document)
    elif given.markdown and str(given.markdown) == "-":
        print(markdown(document), end="")
    else:
        print(text(document, every=given.all), end="")
    return int(document["answer"]["breaks"])


def _extract(word: str, given: Namespace) -> tuple[dict[str, Any], str]:
    """What a person named, and the profile that the name holds."""
    from pytest_vllm.compare import kept
    from pytest_vllm.compare.extract import ExtractError

    profile, colon, last = word.rpartition(":")
    try:
        if colon and last == kept.LAST_GOOD:
            return kept.last_good(given.reports / kept.HISTORY, profile), profile
        path = Path(word)
        document = kept.read(path)
        folder = path if path.is_dir() else path.parent
        return kept.with_reasons(document, folder), ""
    except ExtractError as error:
        raise UsageError(str(error)) from None


def _profiles(before: dict[str, Any], after: dict[str, Any], wanted: str) -> tuple[str, str]:
    """Which profile of each run: the one that is named, the one that both have, or the only one of each."""
    names = [list(one["profiles"]) for one in (before, after)]
    if wanted and all(wanted in some for some in names):
        return wanted, wanted
    single = [some[0] for some in names if len(some) == 1]
    both = [name for name in names[0] if name in names[1]]
    if len(both) == 1 and not wanted:
        return both[0], both[0]
    if len(single) == 2 and (not wanted or wanted in single):
        return single[0], single[1]
    has = " and ".join(", ".join(some) or "no profile" for some in names)
    raise UsageError(f"which profile? the runs are of {has}: name one that both have with --profile=NAME")
