"""The end of the terminal output: the table, the lists, where the time went, the answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.decide.verdict import Answer, Family, Level, Verdict
from pytest_vllm.report import causes as wording
from pytest_vllm.report import summary
from pytest_vllm.report.clients import client_lines
from pytest_vllm.report.evidence import rerun
from pytest_vllm.report.record import DID_NOT_BOOT
from pytest_vllm.report.redaction import redactor_for, scrub
from pytest_vllm.report.text import (
    PLAIN,
    Style,
    clip,
    clock,
    columns,
    count,
    printable,
    ruled,
    shown_path,
    wrap,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_vllm.decide.verdict import Result
    from pytest_vllm.report.record import RunRecord
    from pytest_vllm.wire.redact import Redactor

MOST_ROWS = 20
LABEL, INDENT = 15, 4
#: Lines of lists, and rows of the table, in a CI job's log.
BRIEF, BRIEF_ROWS = 10, 8
LAST_LOG_LINES = 5
UNDECIDED = "undecided"

#: What to do next, by answer.
NEXT = {
    Answer.UNDECIDED: "an undecided check accuses nobody: remove its cause, then run again",
    Answer.NO_VERDICT: 'vllm_own_tests = "count" makes passing own tests a GO; --vllm-suites adds checks',
    Answer.NOTHING_RAN: "`pytest-vllm checks` lists the checks, `pytest --collect-only` the tests here",
}


def verdict_lines(record: RunRecord, *, redactor: Redactor | None = None, style: Style = PLAIN) -> list[str]:
    """The verdict of a run: what counted, the causes, the answer last.

    Args:
        record: the run.
        redactor: takes secrets out; the default knows the servers' keys and what credentials look like.
        style: colour and width.
    """
    details = detail_lines(record, redactor=redactor, style=style)
    return [*details, *last_screen(record, redactor=redactor, style=style)]


def detail_lines(
    record: RunRecord, *, redactor: Redactor | None = None, style: Style = PLAIN, brief: bool = False
) -> list[str]:
    """What counted: a heading, the table, the lists, where the time went.

    Args:
        record: the run.
        redactor: takes secrets out; the default knows the servers' keys and what credentials look like.
        style: colour and width.
        brief: only what did not pass, for a CI job's log.
    """
    redactor = redactor or redactor_for(record.servers.values())
    results = scrub(record.results, redactor)
    lines = [style.strong(_heading(record, style)), *_tables(record, results, style, brief=brief)]
    lines += _deaths(record, redactor, style)
    named = _lists(record, results, redactor, style)
    if brief and len(named) > BRIEF:
        named[BRIEF:] = [f"{'':{LABEL}}… {len(named) - BRIEF} more lines in report.html"]
    lines += named
    lines += client_lines(map(vars, results), style)
    lines += _comparisons(record, redactor, style)
    return [*lines, *_phases(record, redactor, style)]


def last_screen(record: RunRecord, *, redactor: Redactor | None = None, style: Style = PLAIN) -> list[str]:
    """The causes, how to see them again, where the reports lie, the answer: what 24 rows hold.

    Args:
        record: the run.
        redactor: takes secrets out; the default knows the servers' keys and what credentials look like.
        style: colour and width.
    """
    redactor = redactor or redactor_for(record.servers.values())
    lines = cause_lines(record, redactor, style)
    if record.replayed:
        lines.append(f"{'replayed':{LABEL}}{redactor.text(record.replayed)}, no server was asked")
    folder = redactor.text(shown_path(record.folder))
    lines.append(f"{'reports':{LABEL}}{folder}/report.html, report.md, report.json")
    if record.decision.answer in NEXT and not record.boot_failures:
        lines.append(f"{'next':{LABEL}}{NEXT[record.decision.answer]}")
    return [*lines, *_answers(record, redactor, style)]


def cause_lines(record: RunRecord, redactor: Redactor, style: Style) -> list[str]:
    """Three rows for each of the likeliest causes, and the line that runs the first one's check again."""
    found = record.causes
    if not found:
        return []
    lines = ["", style.bad(wording.summed(found))]
    several = len(record.servers) > 1
    for place, cause in enumerate(found[: wording.MOST_CAUSES], 1):
        first = scrub(cause.first, redactor)
        on = f" on {first.profile}" if several else ""
        rows = [
            style.strong(clip(printable(redactor.text(wording.headline(cause) + on)), style.width - INDENT)),
            clip(printable(first.fact), style.width - INDENT),
            clip(printable(redactor.text(wording.observed(cause))), style.width - INDENT),
        ]
        lines += [f"{place if row is rows[0] else '':>2}  {row}" for row in rows]
    if len(found) > wording.MOST_CAUSES:
        lines.append(f"    … {count(len(found) - wording.MOST_CAUSES, 'more cause')} in report.html")
    first = found[0].first
    run = record.servers.get(first.profile)
    return [*lines, *([f"{'rerun':{LABEL}}{redactor.text(rerun(first, run))}"] if run else [])]


def _heading(record: RunRecord, style: Style) -> str:
    simulated = [run.server.simulated for run in record.servers.values()]
    mark = "" if not any(simulated) else " (simulated)" if all(simulated) else " (partly simulated)"
    return ruled(f"vllm verdict{mark}", style.width)


def _tables(record: RunRecord, results: Sequence[Result], style: Style, *, brief: bool) -> list[str]:
    rows = summary.suites(results)
    if brief:
        loud = (Verdict.FAIL, Verdict.UNDECIDED)
        rows = [one for one in rows if any(one.counts.get(verdict) for verdict in loud)][:BRIEF_ROWS]
    profiles = list(dict.fromkeys(row.profile for row in rows))
    lines: list[str] = []
    for profile in profiles:
        mine = [row for row in rows if row.profile == profile]
        title = "suite" if len(record.servers) + len(record.boot_failures) < 2 else printable(profile)
        widest = min(30, max(len(title), *(columns(printable(row.area)) for row in mine)))
        head = "".join(f"{word:>{len(word) + 2}}" for word in summary.COLUMNS.values())
        lines.append(style.strong(f"{clip(title, widest):{widest}}{head}"))
        for row in mine:
            area = clip(printable(row.area), widest)
            cells = "".join(
                _cell(row.counts.get(verdict, 0), verdict, len(word) + 2, style)
                for verdict, word in summary.COLUMNS.items()
            )
            lines.append(f"{area}{' ' * (widest - columns(area))}{cells}")
        lines.append("")
    return lines


def _cell(number: int, verdict: Verdict, width: int, style: Style) -> str:
    text = f"{number or '.':>{width}}"
    if not number or verdict in (Verdict.PASS, Verdict.NOT_RUN):
        return text
    return style.bad(text) if verdict is Verdict.FAIL else style.doubtful(text)


def _ended(died: str) -> str:
    return "server hangs" if " hangs:" in died else "server died"


def _deaths(record: RunRecord, redactor: Redactor, style: Style) -> list[str]:
    lines: list[str] = []
    for name, run in record.servers.items():
        if run.died:
            what = printable(redactor.text(f"{name}: {run.died}"))
            shown = _labelled(_ended(run.died), wrap(what, style.width - LABEL))
            lines += [style.bad(shown[0]), *shown[1:]]
            last = [printable(redactor.text(line)) for _, line in run.log[-LAST_LOG_LINES:]]
            lines += [clip(f"{'':{LABEL}}{line}", style.width) for line in last]
            log = redactor.text(shown_path(record.folder / run.log_file))
            lines.append(f"{'':{LABEL}}{log}, {count(len(run.log), 'line')}")
    return lines


def _lists(record: RunRecord, results: Sequence[Result], redactor: Redactor, style: Style) -> list[str]:
    several = len(record.servers) + len(record.boot_failures) > 1
    of = {verdict: [row for row in results if row.verdict is verdict] for verdict in Verdict}
    lines = _failed(of[Verdict.FAIL], style, several=several)
    lines += _own_failing(record, redactor, style)
    for verdict, word in ((Verdict.UNDECIDED, UNDECIDED), (Verdict.NOT_RUN, "not run")):
        lines += _grouped(word, of[verdict], style)
    advisory = [_name(row, several=several) for row in of[Verdict.ADVISORY]]
    lines += _counted("advisory", len(advisory), _capped(advisory, style))
    return [*lines, *_waived(record, of[Verdict.WAIVED], redactor, style, several=several)]


def _comparisons(record: RunRecord, redactor: Redactor, style: Style) -> list[str]:
    """What changed against the baseline: broken and fixed checks by name, the rest as counts."""
    if record.against is not None or record.against_why:
        from pytest_vllm.report.compared import beside  # noqa: PLC0415 - few runs compare two servers

        document = None if record.against is None else redactor.value(dict(record.against))
        return beside(document, redactor.text(record.against_why), style.width)
    lines = []
    for one in record.comparisons:
        before, server = one.baseline, record.servers[one.baseline.profile].server
        mark = ", simulated" if before.simulated else ""
        lines.append(f"against {before.taken} (vLLM {before.version} -> {server.version}{mark})")
        named = (("new failure", one.broken), ("fixed", one.fixed))
        rows = [(word, list(checks)) for word, checks in named if checks]
        for word, checks in rows:
            lines += _labelled(f"  {word}", _capped([printable(check) for check in checks], style))
        counts = [f"{len(c)} {word}" for c, word in ((one.new, "new"), (one.gone, "gone")) if c]
        lines += [f"  {', '.join(counts)} since then"] if counts else []
        lines += [] if rows or counts else ["  nothing changed"]
    return lines


def _phases(record: RunRecord, redactor: Redactor, style: Style) -> list[str]:
    rows: dict[str, list[str]] = {}
    for phase in record.phases:
        rows.setdefault(str(phase.detail.get("profile", "")), []).append(summary.phase_text(phase))
    lines = []
    for name, texts in rows.items():
        text = ", ".join(texts)
        shown = f"{name}: {text}" if len(rows) > 1 and name else text
        lines += wrap(printable(redactor.text(shown)), style.width - LABEL)
    return _labelled("phases", lines)


def _name(row: Result, *, several: bool) -> str:
    family = "" if row.family is Family.CONFORMANCE else f" ({row.family})"
    return printable(f"{row.check}{f' on {row.profile}' if several else ''}{family}")


def _failed(rows: Sequence[Result], style: Style, *, several: bool) -> list[str]:
    names = [_name(row, several=several) for row in rows]
    widest = min(46, max((columns(name) for name in names), default=0))
    shown = [
        f"{name}{' ' * max(0, widest - columns(name))}  {printable(row.fact)}"
        for name, row in zip(names, rows, strict=True)
    ]
    families = Counter(str(row.family) for row in rows)
    apart = ", ".join(f"{number} {family}" for family, number in families.items())
    kinds = [apart] if set(families) - {str(Family.CONFORMANCE)} else []
    return _counted("failed", len(rows), [*_capped(shown, style), *kinds], paint=style.bad)


def _own_failing(record: RunRecord, redactor: Redactor, style: Style) -> list[str]:
    """Own tests that failed, each with its reason and the command that runs the first one again."""
    rows = [one for one in record.own if one.failing]
    shown = [printable(redactor.text(f"{one.nodeid}  {one.message}")) for one in rows]
    lines = _counted("own failed", len(rows), _capped(shown, style), paint=style.bad)
    again = next((redactor.text(one.rerun) for one in rows if one.rerun), "")
    return [*lines, *_labelled("rerun", [again] if again else [])]


def _grouped(word: str, rows: Sequence[Result], style: Style) -> list[str]:
    shown: list[str] = []
    must = {row.check for row in rows if row.level is Level.MUST}
    # what decides the answer comes first
    rows = sorted(rows, key=lambda row: row.level is not Level.MUST) if word == UNDECIDED else rows
    groups = summary.by_reason((row.reason, row.check) for row in rows)
    if word == UNDECIDED:
        groups.sort(key=lambda group: must.isdisjoint(group.checks))
    for group in groups[: MOST_ROWS // 2]:
        text = f"{_must(word, group, must)}{summary.names(group.checks)}: {group.reason}"
        shown += wrap(printable(text), style.width - LABEL)[:4]
    if len(groups) > MOST_ROWS // 2:
        shown.append(f"… {len(groups) - MOST_ROWS // 2} more reasons in report.html")
    return _counted(word, len(rows), shown)


def _must(word: str, group: summary.Group, must: set[str]) -> str:
    """`MUST ` before undecided checks that the answer hangs on."""
    return "MUST " if word == UNDECIDED and not must.isdisjoint(group.checks) else ""


def _waived(
    record: RunRecord, rows: Sequence[Result], redactor: Redactor, style: Style, *, several: bool
) -> list[str]:
    uses = summary.waiver_uses(record)
    ends = {(use.profile, use.waiver.check): use.waiver.until for use in uses}
    shown = []
    for row in rows:
        end = ends.get((row.profile, row.check)) or ends.get((row.profile, row.check.partition("[")[0]))
        shown.append(
            _name(row, several=several)
            + (f", until {end}" if end else "")
            + ", as before" * bool(row.excused)
        )
    expired = [
        printable(redactor.text(f"{use.waiver.check}: its waiver ended on {use.waiver.until}"))
        for use in uses
        if use.state == "expired"
    ]
    lines = _counted("waived", len(rows), _capped(shown, style))
    return [*lines, *_counted("expired", len(expired), _capped(expired, style), paint=style.bad)]


def _capped(rows: Sequence[str], style: Style) -> list[str]:
    shown = [clip(row, style.width - LABEL) for row in rows[:MOST_ROWS]]
    return [*shown, f"… {len(rows) - MOST_ROWS} more in report.html"] if len(rows) > MOST_ROWS else shown


def _counted(word: str, number: int, rows: Sequence[str], *, paint: Callable[[str], str] = str) -> list[str]:
    if not number:
        return []
    first, *rest = _labelled(f"{word:{LABEL - 5}}{number:>3}", rows)
    return [paint(first[: LABEL - 2]) + first[LABEL - 2 :], *rest]


def _labelled(label: str, rows: Sequence[str]) -> list[str]:
    return [f"{label if place == 0 else '':{LABEL}}{row}" for place, row in enumerate(rows)]


def _answers(record: RunRecord, redactor: Redactor, style: Style) -> list[str]:
    profiles = {name: run.server.simulated for name, run in record.servers.items()}
    profiles |= {failure.profile: failure.simulated for failure in record.boot_failures}
    rows = []
    if len(profiles) > 1:
        rows = [_profile_answer(record, name, simulated=simulated) for name, simulated in profiles.items()]
        about = count(len(profiles), "profile")
    else:
        about = "".join(_called(name, simulated=simulated) for name, simulated in profiles.items())
    rows.append(_Answer(record.answer, about, record.why, record.seconds, record.seconds_of("boot")))
    widest = max(len(row.answer) for row in rows)
    return [line for row in rows for line in row.lines(widest, redactor, style)]


def _profile_answer(record: RunRecord, name: str, *, simulated: bool) -> _Answer:
    decision = record.decision_of(name)
    failed = any(failure.profile == name for failure in record.boot_failures)
    answer, why = (DID_NOT_BOOT, "see above") if failed else (str(decision.answer), decision.why)
    took, boot = record.seconds_of(profile=name), record.seconds_of("boot", profile=name)
    return _Answer(answer, _called(name, simulated=simulated), why, took, boot)


def _called(name: str, *, simulated: bool) -> str:
    return f"{name} (simulated)" if simulated else name


@dataclass(frozen=True)
class _Answer:
    """One answer, of a profile or of the run."""

    answer: str
    about: str
    why: str
    took: float
    boot: float

    def lines(self, widest: int, redactor: Redactor, style: Style) -> list[str]:
        """The answer, never cut: the times go to a line of their own where both do not fit."""
        paints = {"GO": style.good, "NO-GO": style.bad, DID_NOT_BOOT: style.bad}
        paint = paints.get(self.answer, style.doubtful)
        text = printable(redactor.text(f"{self.about}: {self.why}" if self.about else self.why))
        times = f"{clock(self.took)} in all" + (f", {clock(self.boot)} booting" if self.boot else "")
        answer = paint(self.answer) + " " * (widest - len(self.answer))
        if widest + columns(text) + len(times) + 5 <= style.width:
            return [f"{answer}  {text}   {times}"]
        took = f"{'time':{LABEL}}{times}"
        if widest + columns(text) + 2 <= style.width:
            return [took, f"{answer}  {text}"]
        why = wrap(printable(redactor.text(self.why)), style.width - LABEL)
        return [*_labelled("why", why), took, f"{answer}  {printable(redactor.text(self.about))}".rstrip()]
