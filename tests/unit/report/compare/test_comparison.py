"""The whole comparison: what may be compared, verdicts, the answer, and its views."""

from __future__ import annotations

import json
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from pytest_vllm.decide.verdict import Family, Level, Result, Verdict
from pytest_vllm.report.compare import comparison
from pytest_vllm.report.compare.comparison import NotComparableError, compare
from pytest_vllm.report.compare.difference import AREAS, ORDER
from pytest_vllm.report.compare.extract import verdicts
from pytest_vllm.report.compared import markdown, text
from pytest_vllm.report.compared_page import page
from pytest_vllm.report.compared_yaml import report
from pytest_vllm.wire.failure import HELD_UP, TOO_BUSY
from pytest_vllm.wire.recording import Recording, Request
from tests.unit.report.compare.runs import chat, part_of, run_of, scrape

P = ("p", "p")
JSON = (("content-type", "application/json"),)
HOSTILE = "</script><script>alert(1)</script>|`\x1b[2J"


@pytest.mark.parametrize(
    ("who", "why"),
    [({"simulated": True}, "the simulator"), ({"model": "other"}, "two models, m and other")],
)
def test_runs_that_say_nothing_about_each_other_are_refused(who: dict[str, Any], why: str) -> None:
    with pytest.raises(NotComparableError, match=why):
        compare(run_of(part_of()), run_of(part_of(**who)), P)


def test_a_newer_server_that_does_not_start_breaks_clients() -> None:
    dead = run_of({"answer": "DID NOT BOOT", "why": "out of memory"})
    found = compare(run_of(part_of()), dead, P)

    assert found["answer"]["breaks"]
    assert all("out of memory" in view for view in (text(found), markdown(found), page(found)))
    with pytest.raises(NotComparableError, match="did not boot"):
        compare(dead, run_of(part_of()), P)


def test_other_hardware_leaves_speeds_and_answers_out_and_says_why() -> None:
    before = run_of(part_of([chat("a.q", "x")], hardware="h100"))
    found = compare(before, run_of(part_of([chat("a.q", "y")], hardware="h200")), P)

    assert found["greedy"] is None
    assert "hardware h100 and h200" in found["not_compared"]["speeds"]


def test_other_weights_leave_answers_out() -> None:
    found = compare(run_of(part_of(path="/a")), run_of(part_of(path="/b")), P)

    assert "other weights" in found["not_compared"]["answers"]


@pytest.mark.parametrize(
    ("reason", "weight"),
    [
        (f"{HELD_UP} for 3.4 s: no response came", "for information"),
        (f"{TOO_BUSY}: load 9; 502", "for information"),
        ("the server answered 503", "behaviour"),
    ],
)
def test_what_the_asking_machine_kept_from_being_judged_is_no_difference_of_the_server(
    reason: str, weight: str
) -> None:
    row = Result(
        "a.one", Level.MUST, Family.CONFORMANCE, Verdict.UNDECIDED, "a.one holds.", profile="p", reason=reason
    )
    found = compare(run_of(part_of()), run_of(part_of() | verdicts([row])), P)

    (one,) = [each for each in found["differences"] if each["area"] == "verdicts"]
    assert (one["weight"], one["change"]) == (weight, "broken")


@pytest.mark.parametrize(
    ("was", "now", "change", "weight"),
    [
        ("pass", "fail", "broken", "breaks clients"),
        ("waived", "fail", "broken", "breaks clients"),
        ("pass", "undecided", "broken", "behaviour"),
        ("pass", "not-run", "broken", "behaviour"),
        ("undecided", "fail", "changed", "behaviour"),
        ("fail", "pass", "fixed", "for information"),
        ("fail", "undecided", "changed", "for information"),
    ],
)
def test_verdicts(was: str, now: str, change: str, weight: str) -> None:
    found = compare(run_of(part_of(results={"a.b": was})), run_of(part_of(results={"a.b": now})), P)
    (one,) = found["differences"]

    assert (one["what"], one["change"], one["weight"], one["level"]) == ("a.b", change, weight, "MUST")
    assert found["answer"]["breaks"] is (weight == "breaks clients")


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        ({"a.b": "the option left it out"}, "not asked any more; the option left it out"),
        ({}, "the server does not offer what the check needs any more"),
    ],
)
def test_why_a_check_that_held_was_not_asked_is_said_where_it_is_known(
    reasons: dict[str, str], said: str
) -> None:
    after = part_of(results={"a.b": "not-run"}) | {"reasons": reasons}
    (one,) = compare(run_of(part_of(results={"a.b": "pass"})), run_of(after), P)["differences"]

    assert one["means"] == said


def test_new_and_gone_checks_are_told_unless_a_run_was_partial() -> None:
    before, after = part_of(results={"a.gone": "pass"}), part_of(results={"a.new": "pass"})
    whole = compare(run_of(before), run_of(after), P)
    partial = compare(run_of(before), run_of(after, partial=True), P)

    assert {(one["what"], one["change"]) for one in whole["differences"]} == {
        ("a.new", "new"),
        ("a.gone", "gone"),
    }
    assert partial["differences"] == []


def test_a_run_against_itself_has_no_difference() -> None:
    run = run_of(part_of([chat(f"a.q{n}", "x") for n in range(9)], results={"a.b": "fail"}))

    assert compare(run, json.loads(json.dumps(run)), P)["differences"] == []


def test_views_hold_what_the_document_holds_and_run_nothing_of_it() -> None:
    before = part_of(results={"a.b": "pass"})
    after = part_of(results={"a.b": "fail"})
    after["facts"] = {"a.b": HOSTILE}
    found = compare(run_of(before), run_of(after), P)
    shown, short, html = text(found), markdown(found), page(found)

    assert all("a.b" in view and "1 difference breaks clients" in view for view in (shown, short, html))
    assert "\x1b" not in shown + short + html
    assert "<script>" not in html + short
    assert "script-src 'none'" in unescape(html)


def test_every_verdict_pair_is_told_or_equal() -> None:
    for was in Verdict:
        for now in Verdict:
            found = compare(run_of(part_of(results={"a.b": was})), run_of(part_of(results={"a.b": now})), P)
            assert len(found["differences"]) == (was != now)


SCHEMA = json.loads((Path(comparison.__file__).with_name("comparison.schema.json")).read_text("utf-8"))


def test_the_document_is_as_its_schema_says() -> None:
    was = [chat("a", "one two three"), chat("b", "yes"), scrape("# TYPE vllm:x counter\nvllm:x 1\n")]
    now = [
        chat("a", "one two four", reasoning="so"),
        chat("b", "yes"),
        scrape("# TYPE vllm:y gauge\nvllm:y 1\n"),
    ]
    turns = {"load": {"ttft": [(1.0, 1.3)] * 5, "decode-tok-s": [(9.0, 9.0)]}}
    one, other = run_of(part_of(was)), run_of(part_of(now, results={"a.one": "fail"}, version="0.33.0"))
    dead = run_of({"answer": "DID NOT BOOT", "why": "out of memory"})

    for found in (compare(one, other, P), compare(one, other, P, turns), compare(one, dead, P)):
        jsonschema.Draft202012Validator(SCHEMA).validate(found)
        assert found["differences"]
    broken = compare(one, other, P)
    broken["differences"][0]["weight"] = "heavy"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, SCHEMA)


def test_the_schema_names_every_weight_and_area() -> None:
    told = SCHEMA["$defs"]["difference"]["properties"]

    assert told["weight"]["enum"] == [str(one) for one in ORDER]
    assert tuple(told["area"]["enum"]) == AREAS


def test_what_was_measured_in_turns_counts_instead_of_what_was_measured_apart() -> None:
    apart = {
        "load": {
            "workload": {},
            "figures": {"ttft": {"value": 1, "low": 1, "high": 1, "n": 9, "error": 0.01}},
        }
    }
    one, other = part_of() | {"loads": apart}, part_of() | {"loads": apart}
    found = compare(run_of(one), run_of(other), P, {"load": {"ttft": [(1.0, 1.2)] * 8}})
    none = compare(run_of(one), run_of(other), P, {})

    assert [(row["figure"], row["change"]) for row in found["speeds"]] == [("ttft", "slower")]
    assert (none["speeds"], "speeds" in none["not_compared"]) == ([], True)


def test_a_conformance_report_in_yaml() -> None:
    one = run_of(part_of(results={"a.one": "pass", "a.two": "pass"}))
    other = run_of(part_of(results={"a.one": "fail", "a.two": "pass"}, version="0.33.0"), "r2")
    found = yaml.safe_load(report(compare(one, other, P)))
    (profile,) = found["profiles"]

    assert (found["kind"], found["implementation"]["version"]) == ("ConformanceReport", "0.33.0")
    assert (found["comparedWith"]["version"], profile["result"]) == ("0.32.0", "failure")
    assert profile["statistics"]["breaksClients"] == len(profile["breaksClients"]) == 1
    assert profile["breaksClients"][0]["what"] == "a.one"


def test_hostile_texts_make_no_other_yaml() -> None:
    found = compare(run_of(part_of()), run_of(part_of(version=HOSTILE)), P)

    assert yaml.safe_load(report(found))["profiles"][0]["result"] == "success"


def test_every_other_verdict_has_its_consequence_in_words() -> None:
    names = [verdict.value for verdict in Verdict]
    results = {f"a.{was}-{now}": (was, now) for was in names for now in names if was != now}
    one = run_of(part_of(results={check: was for check, (was, _) in results.items()}))
    other = run_of(part_of(results={check: now for check, (_, now) in results.items()}))

    found = [row for row in compare(one, other, P)["differences"] if row["area"] == "verdicts"]

    assert len(found) == len(results)
    assert [row["what"] for row in found if not row["means"]] == []


def test_cases_that_are_not_asked_any_more_are_one_difference() -> None:
    cases = {f"a.b[{name}]": "pass" for name in "xyz"}
    after = part_of(results=dict.fromkeys(cases, "not-run")) | {
        "reasons": {"a.b[x]": "too old", "a.b[y]": "too old", "a.b[z]": "no route"}
    }
    found = compare(run_of(part_of(results=cases)), run_of(after), P)
    (one,) = found["differences"]

    assert (one["what"], one["weight"], one["level"]) == ("a.b (3 cases)", "behaviour", "MUST")
    assert one["means"] == "not asked any more; too old; and 1 more reason"
    assert "not asked now MUST a.b (3 cases): pass → not-run" in text(found)


def test_a_route_that_is_gone_is_reported_once() -> None:
    """It is a field of the document of routes, too."""
    shown: list[dict[str, Any]] = [
        {"paths": {path: {"post": {}} for path in paths}} for paths in (("/v1/a", "/v1/b"), ("/v1/a",))
    ]
    asked = [Recording("openapi", Request("GET", "/openapi.json"), status=200) for _ in shown]
    parts = [
        part_of([replace(one, headers=JSON, chunks=((0.1, json.dumps(body).encode()),))], document=body)
        for one, body in zip(asked, shown, strict=True)
    ]
    found = compare(run_of(parts[0]), run_of(parts[1]), P)

    assert [one["what"] for one in found["differences"]] == ["POST /v1/b"]
