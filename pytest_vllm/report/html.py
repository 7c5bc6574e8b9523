"""`report.html`: one self-contained page, readable on a phone and in the dark.

A view of the JSON document. The page loads nothing and runs only its own script: its content security
policy names the hashes of both, so that nothing a server said could run even if it were not escaped.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from pytest_vllm.decide.verdict import Family, Level, Verdict
from pytest_vllm.report.bars import measured
from pytest_vllm.report.causes import MOST_CAUSES
from pytest_vllm.report.clients import client_rows
from pytest_vllm.report.compared import amount, verdict_of
from pytest_vllm.report.evidence import Exhibit
from pytest_vllm.report.failure import answer_text
from pytest_vllm.report.plots import plots
from pytest_vllm.report.record import Phase
from pytest_vllm.report.summary import COLUMNS, by_reason, names, phase_text
from pytest_vllm.report.text import clock, count, printable
from pytest_vllm.report.timeline import timeline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HERE = Path(__file__).parent

#: Worst first, as a reader wants them.
ORDER = (
    Verdict.FAIL,
    Verdict.UNDECIDED,
    Verdict.ADVISORY,
    Verdict.WAIVED,
    Verdict.NOT_RUN,
    Verdict.PASS,
)

#: In English, whatever the locale: the page is.
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
#: They are listed by id, and are whole in report.json.
FOLDED = (Verdict.PASS, Verdict.NOT_RUN)

#: What the words mean, for people who see the page without the manual.
LEGEND = {
    "pass": "the requirement holds",
    "fail": "a MUST requirement does not hold; this makes the answer NO-GO",
    "advisory": "a SHOULD requirement does not hold; the answer does not depend on it",
    "waived": "it does not hold, and the profile accepts that until a date",
    "not-run": "the server lacks what the check needs, and the profile does not expect it",
    "undecided": "the evidence allows no judgement; the server is not accused",
}


def render(document: Mapping[str, Any]) -> str:
    """The HTML report of a JSON report."""
    order = {verdict: place for place, verdict in enumerate(ORDER)}
    every = sorted(document["results"], key=lambda row: order[row["verdict"]])
    rows = [row for row in every if row["verdict"] not in FOLDED]
    not_run = [(row["reason"], row["check"]) for row in every if row["verdict"] == Verdict.NOT_RUN]
    return rendered(
        "report.html.j2",
        document,
        script=(HERE / "report.js").read_text("utf-8"),
        rows=rows,
        open=[row for row in rows if row["verdict"] == Verdict.UNDECIDED and row["level"] == Level.MUST],
        measured=_measured(every),
        passed=_passed(every),
        anchors={(row["profile"], row["check"]): f"c{place}" for place, row in enumerate(rows)},
        most_causes=MOST_CAUSES,
        booting=sum(profile["boot_seconds"] for profile in document["profiles"]),
        order=[str(verdict) for verdict in ORDER],
        columns={str(verdict): word for verdict, word in COLUMNS.items()},
        legend=LEGEND,
        clients=client_rows(every),
        not_run=[(names(group.checks), group.reason) for group in by_reason(not_run)],
        phases_text=[phase_text(Phase(**phase)) for phase in document["phases"]],
        plots={
            one["profile"]: [Markup(plot) for plot in plots(one.get("plots", {}))]  # noqa: S704 - escaped there
            for one in document["servers"]
        },
        older=_older(document),
        timelines={one["profile"]: Markup(timeline(one["exchanges"])) for one in document["servers"]},  # noqa: S704 - escaped there
    )


def _measured(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of what was measured against limits, each with its bar."""
    found = measured([row for row in rows if row["family"] == Family.PERFORMANCE])
    return [{**row, "bar": Markup(row["bar"].svg(row["verdict"]) if row["bar"] else "")} for row in found]  # noqa: S704 - escaped there


def _older(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the tables of the comparison with an older server need; None without one."""
    if not document.get("against"):
        return None
    from pytest_vllm.report.compared_page import differences_of  # noqa: PLC0415 - it imports this module

    return differences_of(document["against"])


def _passed(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """(suite, ids) of the checks that passed: folded, since nobody decides by them."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row["verdict"] == Verdict.PASS:
            found.setdefault(f"{row['profile']}: {row['suite']}", []).append(row["check"])
    return list(found.items())


def rendered(
    template: str, document: Mapping[str, Any], *, script: str = "", style: str = "", **more: Any
) -> str:
    """A page of one of our templates, which loads nothing and runs only this script.

    Args:
        template: the file.
        document: its values by name.
        script: our own; empty for a page that needs none.
        style: what the page adds to the report's style.
        more: further values by name.
    """
    css = (HERE / "report.css").read_text("utf-8") + style
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters |= {"when": _when, "clock": clock, "count": count, "fact": _fact, "answer": _answer}
    environment.filters |= {"amount": amount, "verdict_of": verdict_of}
    runs = f"'{_hash(script)}'" if script else "'none'"
    return environment.get_template(template).render(
        document,
        css=Markup(css),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        policy=f"default-src 'none'; style-src '{_hash(css)}'; script-src {runs}; base-uri 'none'",
        **more,
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _shown(value: Any) -> Any:
    """What the template prints: strings with everything that does not print written as its escape."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return "\n".join(printable(line) for line in value.split("\n"))
    return value


def _when(text: str) -> str:
    """`30 November 2026, 07:04 UTC`, of an ISO time; what is none as it is."""
    try:
        at = dt.datetime.fromisoformat(text).astimezone(dt.UTC)
    except ValueError:
        return text
    return f"{at.day} {MONTHS[at.month - 1]} {at.year}, {at:%H:%M} UTC"


def _fact(text: str) -> Markup:
    """A requirement, with what it quotes in backticks as code."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(_shown(text)))))  # noqa: S704 - escaped


def _answer(values: Mapping[str, Any]) -> str:
    return answer_text(Exhibit(**values))
