"""Runs beside each other: two of them compared, a profile's history, today's failures as waivers."""

# ruff: noqa: PLC0415 - every command imports what it needs when it runs

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.cli.command import JSON, UsageError, argument, command, flag, option

if TYPE_CHECKING:
    from argparse import Namespace

#: What a file raises that calls itself an extract and is none.
DAMAGED = (LookupError, TypeError, AttributeError)
REPORTS = option(
    "--reports", "DIR", "the folder of runs and history (default .vllm)", type=Path, default=Path(".vllm")
)


@command(
    "compare",
    argument("BEFORE", "a run folder, its extract.json, or PROFILE:last-good (not the run AFTER)"),
    argument("AFTER", "the same, of the newer run"),
    option("--profile", "NAME", "which profile, where a run is of several"),
    option("--html", "FILE", "write the comparison as a page", type=Path),
    option("--markdown", "FILE", "write it as Markdown, - for standard output", type=Path),
    option("--yaml", "FILE", "write it as a conformance report in YAML", type=Path),
    flag("--all", "print differences that are for information too"),
    JSON,
    REPORTS,
)
def compare(given: Namespace) -> int:
    """Compare two runs of one deployment: what breaks clients, what behaves otherwise, what is slower.

    Exit status: 0 when nothing breaks clients, 1 when something does, 4 when the runs cannot be read or
    compared. Behaviour and speed are reported and do not change it.
    """
    from pytest_vllm.report.compare.comparison import NotComparableError
    from pytest_vllm.report.compare.comparison import compare as compared
    from pytest_vllm.report.compare.kept import LAST_GOOD
    from pytest_vllm.report.compared import markdown, text
    from pytest_vllm.report.tables import print_json

    early = None if given.before.endswith(f":{LAST_GOOD}") else _extract(given.before, given)
    after, other = _extract(given.after, given)
    before, name = early or _extract(given.before, given, but=str(after["run"]["id"]))
    profiles = _profiles(before, after, given.profile or name or other)
    try:
        document = compared(before, after, profiles)
    except NotComparableError as error:
        raise UsageError(str(error)) from None
    except DAMAGED as error:
        raise UsageError(_damaged(f"{given.before} or {given.after}", error)) from None
    if before["run"]["id"] == after["run"]["id"]:
        sys.stderr.write(f"note: both are run {after['run']['id']}: it is compared with itself\n")
    if given.html:
        from pytest_vllm.report.compared_page import page

        _write(given.html, page(document))
    if given.yaml:
        from pytest_vllm.report.compared_yaml import report

        _write(given.yaml, report(document))
    if given.markdown and str(given.markdown) != "-":
        _write(given.markdown, markdown(document))
    if given.json:
        print_json(document)
    elif given.markdown and str(given.markdown) == "-":
        print(markdown(document), end="")
    else:
        print(text(document, every=given.all), end="")
    return int(document["answer"]["breaks"])


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _extract(word: str, given: Namespace, *, but: str = "") -> tuple[dict[str, Any], str]:
    """What a person named, and the profile that the name holds; last-good is another run than `but`."""
    from pytest_vllm.report.compare import kept
    from pytest_vllm.report.compare.extract import ExtractError

    profile, colon, last = word.rpartition(":")
    try:
        if colon and last == kept.LAST_GOOD:
            return kept.last_good(given.reports / kept.HISTORY, profile, but=but), profile
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


@command(
    "history",
    argument("PROFILE", "the profile's name"),
    option("--last", "N", "only so many runs (default 30)", type=int, default=30),
    option("--html", "FILE", "write all of them as a page, with a plot of each figure", type=Path),
    JSON,
    REPORTS,
)
def history(given: Namespace) -> int:
    """Print a profile's runs over time: verdicts, speeds, and where a figure changed its level.

    Changes are found among all runs that the history keeps (200), whatever is shown.
    """
    from pytest_vllm.profile.words import unknown
    from pytest_vllm.report.compare import history as past
    from pytest_vllm.report.compare import kept
    from pytest_vllm.report.past import lines
    from pytest_vllm.report.tables import print_json

    folder = given.reports / kept.HISTORY
    runs = kept.runs(folder, given.profile)
    if not runs:
        known = kept.profiles(folder)
        where = (
            unknown("profile with a history", given.profile, known)
            if known
            else f"no run is kept in {folder}"
        )
        raise UsageError(f"{where}; every run of the gate adds one (--reports names another folder)")
    try:
        table = past.rows(runs, given.profile)
        found = past.changed(table)
    except DAMAGED as error:
        raise UsageError(_damaged(f"an extract in {folder / given.profile}", error)) from None
    if given.html:
        from pytest_vllm.report.past_page import page

        _write(given.html, page(given.profile, table, past.columns(table), found))
    if given.json:
        print_json({"profile": given.profile, "runs": table, "changes": found})
        return 0
    print("\n".join(lines(table[-max(given.last, 1) :], past.columns(table), found)))
    return 0


@command(
    "waive",
    argument("RUN", "a run folder or its extract.json"),
    option("--issue", "URL", "where you track the failures (URL or owner/repository#number)", default=""),
    option(
        "--versions", "RANGE", "vLLM versions they hold for (default: the one that was tested)", default=""
    ),
    option("--days", "N", "days until the waivers end (default 90)", type=int, default=90),
    option("--write", "FILE", "add them to this profile instead of printing them", type=Path),
    option("--profile", "NAME", "which profile, where the run is of several"),
)
def waive(given: Namespace) -> int:
    """Print waivers for the checks that failed in a run, so that a gate can be adopted green and honest.

    Each names where the fault is tracked, the versions it holds for and its last day. A known fault of vLLM
    brings its thread; --issue names where the others are tracked. What was undecided is not waived.
    """
    from pytest_vllm.report.compare.waivers import undecided

    part = _one_profile(given)
    found = _proposals(part, given)
    open_ = undecided(part)
    if open_:
        sys.stderr.write(f"not waived, since they were not decided: {', '.join(open_[:10])}\n")
    if not found:
        sys.stderr.write("nothing failed, so there is nothing to waive\n")
        return 0
    text = "\n\n".join(one.toml for one in found) + "\n"
    if given.write is None:
        print(text, end="")
    else:
        _append(given.write, text, [one.check for one in found])
        print(f"{len(found)} waivers added to {given.write}")
    return 0


def _one_profile(given: Namespace) -> dict[str, Any]:
    run, _ = _extract(given.run, given)
    names = [name for name, part in run["profiles"].items() if "identity" in part]
    if given.profile and given.profile not in names:
        raise UsageError(
            f"the run holds no verdicts of {given.profile}, but of {', '.join(names) or 'no profile'}"
        )
    if not given.profile and len(names) != 1:
        raise UsageError(
            f"which profile? the run holds verdicts of {', '.join(names) or 'none'}: --profile=NAME"
        )
    part: dict[str, Any] = run["profiles"][given.profile or names[0]]
    return part


def _proposals(part: dict[str, Any], given: Namespace) -> list[Any]:
    import datetime as dt

    from pytest_vllm.profile import values
    from pytest_vllm.report.compare.waivers import UntrackedError, proposals

    try:
        issue = values.issue(given.issue) if given.issue else ""
        versions = values.version_range(given.versions) if given.versions else ""
        if given.days < 1:
            raise UsageError(f"--days={given.days}: waivers that end before tomorrow waive nothing")
        until = dt.datetime.now(dt.UTC).date() + dt.timedelta(days=given.days)
        return list(proposals(part, issue=issue, versions=versions, until=until))
    except UntrackedError as error:
        names = ", ".join(error.checks[:10])
        raise UsageError(
            f"no thread is known for {len(error.checks)} of the failures ({names}): a waiver without one is "
            "never removed; say where you track them with --issue=URL"
        ) from None
    except ValueError as error:
        raise UsageError(str(error)) from None
    except DAMAGED as error:
        raise UsageError(_damaged(given.run, error)) from None


def _damaged(what: str, error: Exception) -> str:
    found = f"{type(error).__name__}: {error}"
    return f"{what} lacks what an extract holds ({found}): it is damaged, or was made by hand"


def _append(path: Path, text: str, checks: list[str]) -> None:
    """Add waivers to a profile's file, its comments kept. Raises UsageError where they do not fit there."""
    import tomllib

    try:
        before = path.read_text("utf-8")
        known = tomllib.loads(before).get("waive", [])
        after = f"{before.rstrip()}\n\n{text}"
        tomllib.loads(after)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: the waivers cannot be added: {error}") from None
    there = sorted({str(one.get("check")) for one in known if isinstance(one, dict)} & set(checks))
    if there:
        raise UsageError(
            f"{path} has waivers of {', '.join(there)} already, which do not cover this run: change their "
            "range or end by hand"
        )
    path.write_text(after, "utf-8")
