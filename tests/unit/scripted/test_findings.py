"""The page of findings: what explains a failure, what nothing explains, and that the page is up to date."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_vllm.locate import data_dir
from pytest_vllm.scripted.grammar import names
from tools.sweep.findings import (
    PAGE,
    VERDICTS,
    Finding,
    SweepRecord,
    boiled,
    explained,
    findings,
    merged,
    swept,
)
from tools.sweep.page import page
from tools.sweep.rows import Outcome, Pair, Row, cases
from tools.sweep.waived import waived

ROW = Row(
    Pair("tool", "xlam", ""),
    "0.32.0",
    "alone",
    {"stream[single]": "failed", "whole[single]": "passed", "stream[list]": "failed"},
    {"stream[single]": "calls: none", "stream[list]": "note '{}'"},
)
LOST = Finding("Calls are lost", ("tool:xlam",), ("stream(*)",), "confirmed", "They are not.", says="none")


def test_a_failure_is_explained_by_parser_check_and_evidence() -> None:
    seen, rest = explained([ROW], [LOST])

    assert seen[0].failures == [(ROW, "stream[single]")]
    assert rest.failures == [(ROW, "stream[list]")]


def test_what_passed_is_counted_and_not_kept() -> None:
    kept = boiled([ROW])[0]

    assert kept["passed"] == 1
    assert set(kept["outcomes"]) == {"stream[single]", "stream[list]"}


def test_rows_of_other_parsers_stay() -> None:
    other = replace(ROW, pair=Pair("tool", "hermes", ""), outcomes={"whole[single]": "passed"})
    again = replace(ROW, outcomes={"whole[single]": "passed"})
    kept = merged([*boiled([other]), *boiled([ROW])], boiled([again]))

    assert [(one["parser"], one["failed"]) for one in kept] == [("hermes", 0), ("xlam", 0)]


@pytest.mark.parametrize("finding", findings(), ids=lambda one: one.title[:40])
def test_a_finding_names_parsers_that_there_are_and_explains_something(finding: Finding) -> None:
    kinds = [one.partition(":")[::2] for one in finding.parsers]
    rows = [row for one in swept() for row in one.rows]

    assert finding.verdict in VERDICTS
    assert [
        name for kind, name in kinds if name not in names("tool" if kind == "tool" else "reasoning")
    ] == []
    assert explained(rows, [finding])[0][0].failures


def test_the_page_is_what_the_command_writes() -> None:
    told = page(swept(), findings())

    assert told == Path(PAGE).read_text("utf-8"), "run python -m tools.sweep.findings"


KNOWN = replace(LOST, upstream=("vllm-project/vllm#1",), checks=("stream(*)", "whole(*)"), says="")
PAIR = ROW.pair


def rows_of(alone: dict[str, Outcome], served: dict[str, Outcome]) -> list[Row]:
    """The same parser without a server and on one; whatever failed has evidence."""
    return [
        Row(PAIR, "0.32.0", via, outcomes, dict.fromkeys(outcomes, "calls: none"))
        for via, outcomes in (("alone", alone), ("server", served))
    ]


def checks_waived(rows: list[Row], finding: Finding) -> list[str]:
    """The checks that the file waives."""
    waivers = tomllib.loads(waived(rows, [finding])).get("waive", [])
    return [check for one in waivers for check in one["checks"]]


def test_what_always_fails_and_is_known_upstream_is_waived() -> None:
    alone: dict[str, Outcome] = {
        "whole[a]": "failed",
        **dict.fromkeys(("stream[b]", "split[b]", "chunks[b]"), "failed"),
        "stream[c]": "failed",
        "chunks[c]": "passed",
    }
    served: dict[str, Outcome] = {
        "scripted.answer.whole[a]": "failed",
        "scripted.answer.stream[b]": "failed",
        "scripted.answer.stream[c]": "failed",
        "scripted.cut.markup": "failed",
        "scripted.unknown.whole": "failed",
    }
    rows = rows_of(alone, served)
    served_alone = replace(KNOWN, checks=("scripted.*",))

    assert checks_waived(rows, KNOWN) == ["scripted.answer.stream[b]", "scripted.answer.whole[a]"]
    assert checks_waived(rows, served_alone) == ["scripted.cut.markup"]
    assert checks_waived(rows, replace(KNOWN, upstream=())) == []
    assert checks_waived(rows, replace(KNOWN, verdict="ambiguous")) == []
    assert checks_waived(rows[:1], KNOWN) == []


def test_a_fault_in_which_the_other_parser_has_a_part_is_waived_beside_it_alone() -> None:
    rows = rows_of({}, {"scripted.stop.stream[nowhere]": "failed", "scripted.cut.markup": "failed"})
    told = tomllib.loads(waived(rows, [replace(KNOWN, checks=("scripted.*",))]))["waive"]

    assert [(one["checks"], one.get("beside")) for one in told] == [
        (["scripted.stop.stream[nowhere]"], "none"),
        (["scripted.cut.markup"], None),
    ]


def test_a_fault_that_takes_most_streams_is_not_waived() -> None:
    many = [name for name, _, _ in cases(ROW.pair)][:-2]
    alone: dict[str, Outcome] = {
        f"{mode}[{name}]": "failed" for mode in ("stream", "split", "chunks") for name in many
    }
    rows = rows_of(alone, {f"scripted.answer.stream[{many[0]}]": "failed"})

    assert checks_waived(rows, KNOWN) == []


def test_the_waivers_are_what_the_command_writes() -> None:
    rows = [row for one in swept() for row in one.rows]

    assert waived(rows, findings()) == (data_dir("fixtures") / "waivers" / "parsers.toml").read_text("utf-8")


def test_a_row_that_goes_by_the_other_parsers_name_is_named() -> None:
    both = Pair("tool", "hermes", "deepseek_r1")
    server = SweepRecord([replace(ROW, pair=both, via="server", outcomes={})], {("tool", "hermes"): 3})
    alone = [replace(ROW, pair=replace(both, kind=kind), outcomes={}) for kind in ("tool", "reasoning")]
    told = page([server, SweepRecord(alone, {("tool", "hermes"): 3, ("reasoning", "deepseek_r1"): 2})], [])

    assert "| reasoning `deepseek_r1` | `hermes` | with tool `hermes` | 2 passed" in told
