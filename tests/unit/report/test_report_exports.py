"""What other programs read of a run: each file in the form of its kind, nothing left out, nothing made up."""

from __future__ import annotations

import csv
import io
import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from pytest_vllm.report import exports, json_report
from pytest_vllm.wire.redact import Redactor
from tests.golden.sample_runs import go, no_go, undecided

SVG = "{http://www.w3.org/2000/svg}"


def document(record: Any) -> dict[str, Any]:
    """The JSON report of a run."""
    return json_report.document(record, Redactor(()), lambda *_, **__: "")


def test_sarif_has_each_check_that_is_to_be_looked_at() -> None:
    shown = document(no_go())
    log = json.loads(exports.sarif(shown))
    (run,) = log["runs"]

    levels = {row["ruleId"]: row["level"] for row in run["results"]}
    failing = {row["check"] for row in shown["results"] if row["verdict"] == "fail"}
    assert failing
    assert {name for name, level in levels.items() if level == "error"} == failing
    for row in run["results"]:
        assert run["tool"]["driver"]["rules"][row["ruleIndex"]]["id"] == row["ruleId"]
        (place,) = row["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"]
        assert place["physicalLocation"]["region"]["startLine"] >= 1


def test_a_profile_of_ones_own_is_where_a_failure_lies() -> None:
    shown = document(no_go())
    shown["servers"][0]["origin"] = "vllm-profiles/chat.toml"

    (run,) = json.loads(exports.sarif(shown))["runs"]
    uris = {row["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for row in run["results"]}
    assert uris == {"vllm-profiles/chat.toml"}


@pytest.mark.parametrize(("record", "is_go"), [(go, 1), (no_go, 0), (undecided, 0)])
def test_openmetrics_parse_and_say_whether_it_is_go(record: Any, is_go: int) -> None:
    shown = document(record())
    shown["profiles"][0]["name"] = 'a "profile"\\'
    families = text_string_to_metric_families(exports.openmetrics(shown))  # type: ignore[no-untyped-call]
    found = {one.name: one for one in families}

    (sample,) = found["pytest_vllm_go"].samples
    assert (sample.value, sample.labels["profile"]) == (is_go, 'a "profile"\\')
    counts = {one.labels["verdict"]: one.value for one in found["pytest_vllm_checks"].samples}
    assert counts == shown["profiles"][0]["counts"]


@pytest.mark.parametrize(
    ("record", "words"), [(go, "GO (simulated)"), (no_go, "NO-GO"), (undecided, "UNDECIDED")]
)
def test_a_badge_says_the_answer(record: Any, words: str) -> None:
    svg = ET.fromstring(exports.badge(document(record())))  # noqa: S314 - our own text

    assert (list(svg.iter(f"{SVG}text"))[1].text or "").startswith(words)
    assert svg.find(f"{SVG}title") is not None


def test_measured_values_are_a_table_that_no_spreadsheet_runs() -> None:
    shown = document(go())
    row = {
        **shown["results"][0],
        "family": "performance",
        "observations": {"speed": "3.3 tok/s", "x": "=1+1"},
    }
    shown["results"] = [row, shown["results"][0]]

    head, *lines = csv.reader(io.StringIO(exports.measurements(shown)))
    assert head == ["profile", "check", "level", "verdict", "name", "value"]
    assert [line[4:] for line in lines] == [["speed", "3.3 tok/s"], ["x", "'=1+1"]]


def test_a_failing_test_of_ones_own_is_in_sarif_too() -> None:
    shown = document(go())
    own = {"nodeid": "tests/test_bot.py::test_greets", "outcome": "failed", "message": "AssertionError: no"}
    shown["own_tests"] = [own, {**own, "nodeid": "tests/test_bot.py::test_other", "outcome": "passed"}]

    (run,) = json.loads(exports.sarif(shown))["runs"]
    (row,) = [row for row in run["results"] if row["ruleId"] == exports.OWN]
    assert row["message"]["text"] == "test_greets: AssertionError: no"
    assert row["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "tests/test_bot.py"
