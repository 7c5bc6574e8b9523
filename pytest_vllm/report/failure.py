"""The block of one check that did not pass: what was required, what came, and how to see it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.decide.causes import named_at
from pytest_vllm.decide.verdict import Verdict
from pytest_vllm.report.evidence import Evidence, Exhibit, evidence_of
from pytest_vllm.report.redaction import redactor_for, scrub
from pytest_vllm.report.text import PLAIN, Style, clip, count, paragraphs, printable, shown_path, wrap

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.decide.verdict import Result
    from pytest_vllm.report.excerpt import Line
    from pytest_vllm.report.record import ServerRun
    from pytest_vllm.wire.redact import Redactor

LABEL, INDENT = 8, 6
#: Lines of a brief block: what was required and observed; the exchange.
BRIEF_WORDS, BRIEF_EXHIBIT = 4, 4


def failure_block(
    result: Result,
    run: ServerRun,
    *,
    folder: Path,
    redactor: Redactor | None = None,
    rerun: str = "",
    before: str | None = None,
    style: Style = PLAIN,
    brief: bool = False,
) -> str:
    """Everything about a check that did not pass, in at most `style.width` columns.

    Only what a person copies (URLs, commands, paths) is never cut or wrapped.

    Args:
        result: the check.
        run: its server.
        folder: the run folder.
        redactor: takes secrets out; the default knows the server's key and what credentials look like.
        rerun: the command that runs the check again; empty: derived from the server.
        before: what the baseline says of this check, if there is one.
        style: colour and width.
        brief: the requirement, one exchange, and how to see it again, in about ten lines.
    """
    redactor = redactor or redactor_for([run])
    evidence = evidence_of(result, run, redactor)
    result = scrub(result, redactor)
    width = style.width
    lines = _requirement(result, run, style)
    if brief:
        return "\n".join([*lines[:BRIEF_WORDS], *_brief(evidence, result.reason, folder, width)])
    for exhibit in evidence.exhibits:
        lines += ["", *exhibit_lines(exhibit, folder, width)]
    if evidence.left_out:
        lines += ["", f"… {count(evidence.left_out, 'more exchange')} of this check"]
    lines.append("")
    if run.died and all(exhibit.status is None for exhibit in evidence.exhibits):
        lines.append(f"{'server':{LABEL}}died while it was being tested, see the verdict")
    else:
        lines += _log_lines(evidence, folder, width)
        lines += _where(result, evidence, width)
    if before:
        lines.append(clip(f"{'before':{LABEL}}{printable(redactor.text(before))}", width))
    lines.append(f"{'rerun':{LABEL}}{redactor.text(rerun) or evidence.rerun}")
    if evidence.script:
        lines.append(f"{'curl':{LABEL}}{shown_path(folder / evidence.script)}")
    return "\n".join(lines)


def _brief(evidence: Evidence, reason: str, folder: Path, width: int) -> list[str]:
    """The exchange that the reason names first, else the last one shown, and what runs the check again."""
    places = {named_at(reason, one.key): one for one in evidence.exhibits if one.request}
    named = [at for at in places if at >= 0]
    chosen = [places[min(named)]] if named else list(evidence.exhibits[-1:])
    lines = [line for one in chosen for line in exhibit_lines(one, folder, width)]
    if len(lines) > BRIEF_EXHIBIT:
        lines = [*lines[: BRIEF_EXHIBIT - 1], lines[-1]]
    lines.append(f"{'rerun':{LABEL}}{evidence.rerun}")
    return [*lines, f"{'curl':{LABEL}}{shown_path(folder / evidence.script)}"] if evidence.script else lines


def _requirement(result: Result, run: ServerRun, style: Style) -> list[str]:
    level = f"{result.level!s:{INDENT}}"
    fact, *rest = wrap(printable(result.fact), style.width - INDENT)
    paint = style.bad if result.verdict is Verdict.FAIL else style.doubtful
    lines = [paint(level) + fact, *(" " * INDENT + line for line in rest)]
    reason = result.reason or "no reason was given"
    if result.verdict is Verdict.UNDECIDED:
        reason = f"undecided: {reason}"
    lines += [" " * INDENT + line for line in paragraphs(reason, style.width - INDENT)]
    if run.server.simulated:
        lines.append(" " * INDENT + style.doubtful("simulated: this is not an answer of a real vLLM"))
    return lines


def exhibit_lines(exhibit: Exhibit, folder: Path, width: int) -> list[str]:
    """One exchange: `>` what was sent, `<` what came back."""
    if not exhibit.request:
        return [clip(f"> {exhibit.key}: {exhibit.error}", width)]
    headers = "   ".join(exhibit.headers)
    lines = [clip(f"> {exhibit.request:36} {headers}".rstrip(), width)]
    if exhibit.body:
        lines.append(clip(f"> {exhibit.body}", width))
    lines.append(clip(f"< {answer_text(exhibit)}", width))
    lines += [_response_line(line, width) for line in exhibit.lines]
    if exhibit.file:
        lines.append(f"<    full record {shown_path(folder / exhibit.file)}")
    return lines


def answer_text(exhibit: Exhibit) -> str:
    """`200  text/event-stream  14 events in 0.82s`."""
    if exhibit.status is None:
        return f"no response after {exhibit.seconds:.2f}s: {exhibit.error or 'the reason is unknown'}"
    size = count(exhibit.size, "byte") if exhibit.events is None else count(exhibit.events, "event")
    kind = exhibit.content_type or "no content type"
    return f"{exhibit.status}  {kind}  {size} in {exhibit.seconds:.2f}s"


def _response_line(line: Line, width: int) -> str:
    if line.left_out:
        return f"<    …       {line.left_out} more"
    at = "" if line.at is None else f"{line.at:.2f}s"
    return clip(f"<    {at:7} {line.text}".rstrip(), width)


def _log_lines(evidence: Evidence, folder: Path, width: int) -> list[str]:
    lines = [clip(f"{'server':{LABEL}}{line}", width) for line in evidence.log]
    if evidence.log_total:
        total = count(evidence.log_total, "line")
        lines.append(f"{'':{LABEL}}{shown_path(folder / evidence.log_file)}, {total} in this window")
    return lines


def _where(result: Result, evidence: Evidence, width: int) -> list[str]:
    spec, source = f"{'spec':{LABEL}}{result.spec}", f"source {result.source}"
    if not result.source:
        lines = [spec]
    elif len(spec) + len(source) + 6 <= width:
        lines = [f"{spec}      {source}"]
    else:
        lines = [spec, f"{'source':{LABEL}}{result.source}"]
    return [*lines, f"{'':{LABEL}}{evidence.spec_url}"] if evidence.spec_url else lines
