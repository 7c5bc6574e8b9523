"""Small files for other programs: SARIF, OpenMetrics, a badge, and measured values as CSV.

Views of the JSON document, as the page is.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from pytest_vllm.decide.verdict import Family, Verdict
from pytest_vllm.profile.sarif import location, log, result
from pytest_vllm.wire.metrics import Gauge
from pytest_vllm.wire.metrics import openmetrics as written

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What a verdict is in SARIF; of the others nothing is listed.
LEVELS = {Verdict.FAIL: "error", Verdict.UNDECIDED: "warning", Verdict.ADVISORY: "note"}
#: The rule that failing tests of the person's own break.
OWN = "own-tests"
COLOURS = {"GO": "#116b33", "NO-GO": "#b3211b"}
OTHER = "#8a5a00"
#: Units of a badge's text: about a character of Verdana at 11 px, and the space around a word.
CHARACTER, SPACE = 7, 10


def sarif(document: Mapping[str, Any]) -> str:
    """Checks that failed, were undecided or advise, and own tests that failed, as a SARIF 2.1.0 log.

    A result lies in the profile's file where there is one, else in the file of the check or own test.
    """
    rows = [row for row in document["results"] if row["verdict"] in LEVELS]
    names = sorted({row["check"] for row in rows})
    facts = {row["check"]: row["fact"] for row in rows}
    origins = {server["profile"]: server["origin"] for server in document["servers"]}
    own = [one for one in document["own_tests"] if one["outcome"] in ("failed", "error")]
    if own:
        names, facts = [*names, OWN], {**facts, OWN: "A test of your own passes."}
    rules = [{"id": name, "shortDescription": {"text": facts[name]}} for name in names]
    results = [_found(row, names, origins.get(row["profile"], "")) for row in rows]
    results += [_own(one, names) for one in own]
    version = document["run"]["versions"].get("pytest-vllm", "")
    return json.dumps(log("pytest-vllm", version, rules, results), indent=1, ensure_ascii=False) + "\n"


def _found(row: Mapping[str, Any], names: list[str], origin: str) -> dict[str, Any]:
    file, _, line = row["source"].rpartition(":")
    if origin.endswith(".toml"):
        file, line = origin, "1"
    place = location(file or row["profile"], int(line) if line.isdigit() else 1)
    text = f"{row['fact']}\n{row['reason']}".strip()
    return {
        **result(row["check"], names, LEVELS[Verdict(row["verdict"])], text, place),
        "partialFingerprints": {"pytestVllmCheck/v1": f"{row['profile']}:{row['check']}"},
    }


def _own(one: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    file, _, name = one["nodeid"].partition("::")
    text = f"{name}: {one['message']}".strip()
    return {
        **result(OWN, names, LEVELS[Verdict.FAIL], text, location(file, 1)),
        "partialFingerprints": {"pytestVllmOwn/v1": one["nodeid"]},
    }


def openmetrics(document: Mapping[str, Any]) -> str:
    """The answer, verdicts and times as OpenMetrics text, for a node exporter's folder of text files."""
    run, profiles = document["run"], document["profiles"]
    answers = [
        (
            {
                "profile": one["name"],
                "answer": one["answer"],
                "simulated": str(one["simulated"]).lower(),
            },
            int(one["answer"] == "GO"),
        )
        for one in profiles
    ]
    checks = [
        ({"profile": one["name"], "verdict": verdict}, number)
        for one in profiles
        for verdict, number in one["counts"].items()
    ]
    boots = [({"profile": one["name"]}, one["boot_seconds"]) for one in profiles]
    started = dt.datetime.fromisoformat(run["started"]).timestamp()
    gauges = (
        Gauge("pytest_vllm_go", "Whether the answer is GO.", answers),
        Gauge("pytest_vllm_checks", "Checks by verdict.", checks),
        Gauge("pytest_vllm_boot_seconds", "From the start of the server until it answered.", boots),
        Gauge("pytest_vllm_run_seconds", "From the start of the run to its answer.", [({}, run["seconds"])]),
        Gauge(
            "pytest_vllm_started_timestamp_seconds", "When the run began, since the epoch.", [({}, started)]
        ),
    )
    return written(gauges)


def badge(document: Mapping[str, Any]) -> str:
    """The answer as a small SVG, for a README or a wiki; a simulated one says so."""
    answer = document["answer"]
    said = f"{answer['answer']} (simulated)" if answer["simulated"] else answer["answer"]
    left, right = (len(words) * CHARACTER + SPACE for words in ("vLLM gate", said))
    colour = COLOURS.get(answer["answer"], OTHER)
    text = 'fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="vLLM gate: {escape(said)}"><title>vLLM gate: {escape(said)}</title>'
        f'<rect width="{left}" height="20" fill="#444"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/><g {text}>'
        f'<text x="{left / 2:g}" y="14">vLLM gate</text>'
        f'<text x="{left + right / 2:g}" y="14">{escape(said)}</text></g></svg>\n'
    )


def measurements(document: Mapping[str, Any]) -> str:
    """What the checks of the family performance observed, as CSV, one value a line; values with their units.

    A text that a spreadsheet would take for a formula has an apostrophe before it.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("profile", "check", "level", "verdict", "name", "value"))
    for row in document["results"]:
        if row["family"] == Family.PERFORMANCE:
            for name, value in row["observations"].items():
                fields = (row["profile"], row["check"], row["level"], row["verdict"], name, value)
                writer.writerow([_harmless(str(field)) for field in fields])
    return out.getvalue()


def _harmless(text: str) -> str:
    signed = text[:1] in ("+", "-") and text[1:2].isdigit()
    return f"'{text}" if text[:1] in ("=", "@", "+", "-", "\t", "\r") and not signed else text
