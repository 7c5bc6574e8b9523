"""`report.md`: the answer for a CI job's summary page, below 60 kB however much failed.

A view of the JSON document. Whatever a server said stands in code, where it can format nothing.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pytest_vllm.decide.verdict import Verdict
from pytest_vllm.report import summary
from pytest_vllm.report.causes import MOST_CAUSES
from pytest_vllm.report.clients import client_rows
from pytest_vllm.report.evidence import Exhibit
from pytest_vllm.report.excerpt import Line
from pytest_vllm.report.failure import exhibit_lines
from pytest_vllm.report.record import Phase
from pytest_vllm.report.text import WIDTH, clip, clock, count, paragraphs, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LIMIT = 60_000
#: Bytes that the lists after the failures may take.
TAIL = 12_000
MOST_ROWS = 40
_CODE = re.compile("`([^`]+)`")
_ESCAPED = re.compile(r"([\\*_{}\[\]<>|#~@])")


def render(document: Mapping[str, Any]) -> str:
    """The Markdown report of a JSON report, in fewer than 60,000 bytes."""
    blocks = [
        *_answer(document),
        *_boot_failures(document),
        *_deaths(document),
        *_causes(document),
        _table(document),
        _against(document),
    ]
    head = "\n\n".join(block for block in blocks if block)
    tail = _within(_tail(document), TAIL, "… more in report.html")
    room = LIMIT - len(head.encode()) - len(tail.encode()) - 200
    failures = _within(_failures(document), room, "… more failures in report.html")
    return "\n\n".join(part for part in (head, failures, tail) if part) + "\n"


def _within(blocks: Iterable[str], room: int, more: str) -> str:
    """As many whole blocks as the room takes; `more` says that some are missing."""
    taken: list[str] = []
    for block in blocks:
        room -= len(block.encode()) + 2
        if room < 0:
            return "\n\n".join([*taken, more])
        taken.append(block)
    return "\n\n".join(taken)


def _answer(document: Mapping[str, Any]) -> list[str]:
    answer, run = document["answer"], document["run"]
    profiles = document["profiles"]
    about = ", ".join(_named(profile) for profile in profiles) or "no server"
    boot = sum(profile["boot_seconds"] for profile in profiles)
    took = f"{clock(run['seconds'])} in all" + (f", {clock(boot)} booting" if boot else "")
    lines = [f"## {answer['answer']}: {about}", f"{plain(answer['why'])}. {took}."]
    if answer["simulated"]:
        lines.append("**Simulated**: the simulator answered, no vLLM and no GPU was involved.")
    if len(profiles) > 1:
        each = [f"- **{one['answer']}** {_named(one)}: {plain(one['why'])}" for one in profiles]
        lines.append("\n".join(each[:MOST_ROWS]))
    if run["replayed"]:
        lines.append(f"Judged again from the recordings in {code(run['replayed'])}; no server was asked.")
    return lines


def _named(profile: Mapping[str, Any]) -> str:
    name = plain(clip(printable(profile["name"]), WIDTH))
    return f"{name} (simulated)" if profile["simulated"] else name


def _boot_failures(document: Mapping[str, Any]) -> list[str]:
    blocks = []
    for failure in document["boot_failures"]:
        lines = [row for text in failure["evidence"][-20:] for row in paragraphs(text, WIDTH)]
        blocks.append(f"### {plain(failure['profile'])} did not boot\n\n{plain(failure['what'])}")
        blocks += [_fenced(lines)] if lines else []
        blocks += [f"What it means: {plain(failure['means'])}"] if failure["means"] else []
        blocks += ["\n".join(f"- try {plain(text)}" for text in failure["try"])] if failure["try"] else []
    return blocks


def _deaths(document: Mapping[str, Any]) -> list[str]:
    died = [server for server in document["servers"] if server["died"]]
    return [f"**The server died.** {plain(one['profile'])}: {plain(one['died'])}" for one in died]


def _causes(document: Mapping[str, Any]) -> list[str]:
    """One paragraph for each of the likeliest causes, with what runs its check again."""
    found = document["causes"]
    if not found:
        return []
    checks = sum(len(one["checks"]) for one in found)
    rows = [
        f"{place}. **{plain(one['headline'])}**\n   {_fact(one['fact'])}\n"
        f"   Observed: {code(one['observed'])}"
        + (f"\n   Rerun: {code(one['rerun'])}" if one["rerun"] else "")
        for place, one in enumerate(found[:MOST_CAUSES], 1)
    ]
    left = len(found) - MOST_CAUSES
    more = [f"… {count(left, 'more cause')} in report.html"] if left > 0 else []
    return ["\n".join([f"### {count(len(found), 'cause')}, {count(checks, 'check')}", "", *rows, *more])]


def _against(document: Mapping[str, Any]) -> str:
    """The comparison with an older server of the same run."""
    if why := document.get("against_why"):
        return f"Not compared with the older server: {plain(why)}."
    if not document.get("against"):
        return ""
    from pytest_vllm.report.compared import summary as compared  # noqa: PLC0415 - it imports this module

    return compared(document["against"])


def _table(document: Mapping[str, Any]) -> str:
    several = len(document["profiles"]) > 1
    words = list(summary.COLUMNS.values())
    lines = [f"| suite | {' | '.join(words)} |", f"|---|{'---:|' * len(words)}"]
    for row in document["suites"][:MOST_ROWS]:
        name = f"{row['profile']}: {row['suite']}" if several else row["suite"]
        cells = " | ".join(str(row["counts"][str(verdict)] or "·") for verdict in summary.COLUMNS)
        lines.append(f"| {plain(clip(printable(name), WIDTH))} | {cells} |")
    if len(document["suites"]) > MOST_ROWS:
        lines.append(f"\n… {len(document['suites']) - MOST_ROWS} more suites in report.html")
    return "\n".join(lines) if document["suites"] else ""


def _failures(document: Mapping[str, Any]) -> list[str]:
    blocks = []
    for verdict, title in ((Verdict.FAIL, "Failed"), (Verdict.UNDECIDED, "Undecided")):
        rows = [row for row in document["results"] if row["verdict"] == verdict]
        if rows:
            blocks.append(f"### {title}: {len(rows)}")
            blocks += [_failure(row, Path(document["run"]["folder"])) for row in rows]
    own = [one for one in document.get("own_tests", ()) if one["outcome"] in ("failed", "error")]
    if own:
        blocks += [f"### Own tests that failed: {len(own)}", *map(_own_test, own)]
    return blocks


def _own_test(one: Mapping[str, Any]) -> str:
    name, message = (html.escape(clip(printable(one[key]), 2 * WIDTH)) for key in ("nodeid", "message"))
    head = f"<details><summary><code>{name}</code> {one['outcome']}: {message}</summary>"
    lines = [clip(printable(line), WIDTH) for line in one["traceback"].split("\n")[-MOST_ROWS:]]
    for values in one["exchanges"]:
        lines += ["", *exhibit_lines(_exhibit(values), Path(), WIDTH)]
    return f"{head}\n\n{_fenced(lines)}\n\nRerun: {code(one['rerun'])}\n\n</details>"


def _failure(row: Mapping[str, Any], folder: Path) -> str:
    name = html.escape(clip(printable(row["check"]), WIDTH))
    fact = _CODE.sub(r"<code>\1</code>", html.escape(clip(printable(row["fact"]), 2 * WIDTH)))
    family = "" if row["family"] == "conformance" else f", {row['family']}"
    head = f"<details><summary><code>{name}</code> {row['level']}{family}: {fact}</summary>"
    lines = paragraphs(row["reason"] or "no reason was given", WIDTH)
    evidence = row["evidence"]
    rerun = ""
    if evidence:
        for values in evidence["exchanges"]:
            lines += ["", *exhibit_lines(_exhibit(values), folder, WIDTH)]
        log = [clip(f"server  {line}", WIDTH) for line in evidence["log"]]
        lines += ["", *log] if log else []
        rerun = f"\n\nRerun: {code(evidence['rerun'])}"
    spec = plain(row["spec"])
    if row["spec_url"]:
        spec = f"[{spec}]({quote(row['spec_url'], safe=':/#?&=%')})"
    where = f"Spec: {spec}, source: {code(row['source'])}" if row["source"] else f"Spec: {spec}"
    return f"{head}\n\n{_fenced(lines)}\n\n{where}{rerun}\n\n</details>"


def _exhibit(values: Mapping[str, Any]) -> Exhibit:
    lines = tuple(Line(**line) for line in values["lines"])
    return Exhibit(**{**values, "lines": lines, "headers": tuple(values["headers"])})


def _tail(document: Mapping[str, Any]) -> list[str]:
    rows = document["results"]
    seen = [
        f"- {plain(row['client'])}: {plain(clip(row['verdict'], 2 * WIDTH))}" for row in client_rows(rows)
    ]
    blocks = [f"### Clients: {len(seen)}\n\n" + "\n".join(seen)] if seen else []
    not_run = [(row["reason"], row["check"]) for row in rows if row["verdict"] == Verdict.NOT_RUN]
    groups = [
        f"- {plain(summary.names(group.checks))}: {plain(clip(printable(group.reason), 2 * WIDTH))}"
        for group in summary.by_reason(not_run)
    ]
    advisory = [f"- {code(row['check'])} {_fact(row['fact'])}" for row in _of(rows, Verdict.ADVISORY)]
    waived = [
        f"- {code(row['check'])} {plain(clip(printable(row['reason']), 2 * WIDTH))}"
        for row in _of(rows, Verdict.WAIVED)
    ]
    for title, number, lines in (
        ("Not run", len(not_run), groups),
        ("Advisory", len(advisory), advisory),
        ("Waived", len(waived), waived),
    ):
        if lines:
            more = [f"- … {len(lines) - MOST_ROWS} more"] if len(lines) > MOST_ROWS else []
            blocks.append(f"### {title}: {number}\n\n" + "\n".join([*lines[:MOST_ROWS], *more]))
    return [*blocks, *_time(document)]


def _of(rows: Sequence[Mapping[str, Any]], verdict: Verdict) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["verdict"] == verdict]


def _time(document: Mapping[str, Any]) -> list[str]:
    phases = [summary.phase_text(Phase(**phase)) for phase in document["phases"]]
    blocks = [f"Time: {plain(', '.join(phases[:MOST_ROWS]))}."] if phases else []
    servers = [
        f"{plain(one['profile'])}: vLLM {plain(one['version'] or 'version unknown')}, {one['launcher']}, "
        f"{code(one['model'])}"
        for one in document["servers"]
    ]
    blocks += ["; ".join(servers[:MOST_ROWS]) + "."] if servers else []
    count_of = count(len(document["results"]), "check")
    return [*blocks, f"{count_of}, run {code(document['run']['id'])}; everything is in report.html."]


def plain(text: str) -> str:
    """Text that formats nothing, mentions nobody and opens no tag."""
    return _ESCAPED.sub(r"\\\1", printable(text)).replace("`", "\\`")


def _fact(text: str) -> str:
    """A requirement: what it quotes in backticks is code, the rest formats nothing."""
    parts = _CODE.split(text)
    return "".join(code(part) if place % 2 else plain(part) for place, part in enumerate(parts))


def code(text: str) -> str:
    """Text as inline code, whatever backticks it holds."""
    shown = clip(printable(text), 2 * WIDTH)
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if "`" in shown else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def _fenced(lines: Sequence[str]) -> str:
    """Lines as a code block that nothing inside can end."""
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}text", *lines, fence])
