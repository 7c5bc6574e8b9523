"""One line for each cause that GitHub Actions or Azure Pipelines shows beside the job.

Sources: GitHub's documentation, "Workflow commands for GitHub Actions", setting an error message; Microsoft's
documentation, "Logging commands", LogIssue. GitLab reads the JUnit file instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_vllm.decide.verdict import Answer
from pytest_vllm.report.causes import headline, observed
from pytest_vllm.report.text import clip, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_vllm.report.record import RunRecord
    from pytest_vllm.wire.redact import Redactor

#: Columns of an annotation's words; GitHub shows ten errors of a step, so more lines would be lost.
COLUMNS, MOST = 300, 10
#: The variables by which the two are known.
GITHUB, AZURE = "GITHUB_ACTIONS", "TF_BUILD"


class Annotation(NamedTuple):
    """What is to be read beside a job: `error` or `warning`, a title, one line."""

    level: str
    title: str
    text: str


def job_lines(record: RunRecord, redactor: Redactor, environ: Mapping[str, str]) -> list[str]:
    """A command for each of the likeliest causes, redacted, as the system reads it that runs the job.

    Args:
        record: the run.
        redactor: takes secrets out.
        environ: the environment, by which that system is known; none is, outside of a job.
    """
    form = _github if environ.get(GITHUB) else _azure if environ.get(AZURE) else None
    if form is None:
        return []
    lines = []
    for one in list(_found(record))[:MOST]:
        title, text = (printable(redactor.text(words)) for words in (f"vllm: {one.title}", one.text))
        lines.append(form(Annotation(one.level, title, clip(text, COLUMNS))))
    return lines


def _found(record: RunRecord) -> Iterator[Annotation]:
    for failure in record.boot_failures:
        words = "; ".join(filter(None, [failure.what, failure.means]))
        yield Annotation("error", f"{failure.profile} did not boot", words)
    for cause in record.causes:
        yield Annotation("error", headline(cause), f"{cause.first.fact} Observed: {observed(cause)}")
    for own in record.own:
        if own.failing:
            yield Annotation("error", own.nodeid, own.message)
    if record.decision.answer is Answer.UNDECIDED:
        for row in record.decision.undecided:
            yield Annotation("warning", f"{row.check} could not be decided", f"{row.fact} {row.reason}")


def _github(one: Annotation) -> str:
    title = _escaped(one.title).replace(":", "%3A").replace(",", "%2C")
    return f"::{one.level} title={title}::{_escaped(one.text)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _azure(one: Annotation) -> str:
    text = f"{one.title}: {one.text}".replace("%", "%AZP25").replace("\r", "%0D").replace("\n", "%0A")
    return f"##vso[task.logissue type={one.level}]{text}"
