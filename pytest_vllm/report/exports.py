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

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
#: What a verdict is in SARIF; of the others nothing is listed.
LEVELS = {Verdict.FAIL: "error", Verdict.UNDECIDED: "warning", Verdict.ADVISORY: "note"}
COLOURS = {"GO": "#116b33", "NO-GO": "#b3211b"}
OTHER = "#8a5a00"
#: Units of a badge's text: about a character of Verdana at 11 px, and the space around a word.
CHARACTER, SPACE = 7, 10


def sarif(document: Mapping[str, Any]) -> str:
    """Checks that failed, were undecided or advise, as a SARIF 2.1.0 log.

    A result lies in the profile's file where there is one, else in the file of the check.
    """
    rows = [row for row in document["results"] if row["verdict"] in LEVELS]
    names = sorted({row["check"] for row in rows})
    facts = {row["check"]: row["fact"] for row in rows}
    origins = {server["profile"]: server["origin"] for server in document["servers"]}
    driver = {
        "name": "pytest-vllm",
        "version": document["run"]["versions"].get("pytest-vllm", ""),
        "rules": [{"id": name, "shortDescription": {"text": facts[name]}} for name in names],
    }
    results = [_found(row, names.index(row["check"]), origins.get(row["profile"], "")) for row in rows]
    log = {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(log, indent=1, ensure_ascii=False) + "\n"


def _found(row: Mapping[str, Any], place: int, origin: str) -> dict[str, Any]:
    file, _, line = row["source"].rpartition(":")
    if origin.endswith(".toml"):
        file, line = origin, "1"
    region = {"startLine": int(line) if line.isdigit() else 1}
    where = {"artifactLocation": {"uri": file or row["profile"]}, "region": region}
    return {
        "ruleId": row["check"],
        "ruleIndex": place,
        "level": LEVELS[Verdict(row["verdict"])],
        "message": {"text": f"{row['fact']}\n{row['reason']}".strip()},
        "locations": [{"physicalLocation": where}],
        "partialFingerprints": {"pytestVllmCheck/v1": f"{row['profile']}:{row['check']}"},
    }


def openmetrics(document: Mapping[str, Any]) -> str:
    """The answer, verdicts and times as OpenMetrics text, for a node exporter's folder of text files."""
    return "\n".join([*_metrics(document), "# EOF"]) + "\n"


def _metrics(document: Mapping[str, Any]) -> Iterator[str]:
    yield from _gauge("go", "Whether the answer is GO.")
    for one in document["profiles"]:
        labels = _labels(profile=one["name"], answer=one["answer"], simulated=str(one["simulated"]).lower())
        yield f"pytest_vllm_go{labels} {int(one['answer'] == 'GO')}"
    yield from _gauge("checks", "Checks by verdict.")
    for one in document["profiles"]:
        for verdict, number in one["counts"].items():
            yield f"pytest_vllm_checks{_labels(profile=one['name'], verdict=verdict)} {number}"
    yield from _gauge("boot_seconds", "From the start of the server until it answered.")
    for one in document["profiles"]:
        yield f"pytest_vllm_boot_seconds{_labels(profile=one['name'])} {one['boot_seconds']}"
    yield from _gauge("run_seconds", "From the start of the run to its answer.")
    yield f"pytest_vllm_run_seconds {document['run']['seconds']}"
    yield from _gauge("started_timestamp_seconds", "When the run began, since the epoch.")
    started = dt.datetime.fromisoformat(document["run"]["started"]).timestamp()
    yield f"pytest_vllm_started_timestamp_seconds {started:.3f}"


def _gauge(name: str, words: str) -> tuple[str, str]:
    return f"# TYPE pytest_vllm_{name} gauge", f"# HELP pytest_vllm_{name} {words}"


def _labels(**values: str) -> str:
    quoted = (f'{name}="{_quoted(value)}"' for name, value in values.items())
    return f"{{{','.join(quoted)}}}"


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


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
