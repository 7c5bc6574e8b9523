"""The JSON report: closed schema, fixed order, evidence for what did not pass."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from pytest_vllm.decide.verdict import Verdict
from pytest_vllm.report import json_report
from tests.golden.sample_parts import CHAT, answer, record, result, run_of, server
from tests.golden.sample_runs import RUNS, go, no_go, two_profiles, waivers
from tests.unit.report.documents import document, read_back


def test_the_schema_is_a_schema() -> None:
    """The shipped schema is valid under its own draft."""
    jsonschema.Draft202012Validator.check_schema(json_report.schema())


@pytest.mark.parametrize("name", RUNS)
def test_a_report_fits_its_schema(name: str) -> None:
    """Whatever a run holds, its report validates."""
    jsonschema.validate(read_back(RUNS[name]()), json_report.schema(), jsonschema.Draft202012Validator)


def objects(schema: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Every object schema with named properties."""
    found = []
    if isinstance(schema, dict):
        if "properties" in schema and "type" in schema:
            found.append((path, schema))
        for key, value in schema.items():
            found += objects(value, f"{path}/{key}")
    return found


def test_the_schema_is_closed() -> None:
    """Every object names all of its properties, requires them, and allows no others."""
    for path, schema in objects(json_report.schema()):
        assert schema["additionalProperties"] is False, path
        assert sorted(schema["required"]) == sorted(schema["properties"]), path


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), 2),
        (("more",), 1),
        (("answer", "answer"), "MAYBE"),
        (("answer", "exit_code"), 7),
        (("answer", "counts", "pass"), -1),
        (("run", "seconds"), "5.1"),
        (("results", 0, "verdict"), "passed"),
        (("results", 0, "extra"), True),
        (("servers", 0, "capabilities", 0, "present"), "yes"),
        (("results", 18, "evidence"), {}),
    ],
)
def test_the_schema_refuses_a_wrong_report(path: tuple[str | int, ...], value: Any) -> None:
    """A version, word, type or field that is not agreed is refused."""
    report: Any = read_back(go())
    place = report
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, json_report.schema(), jsonschema.Draft202012Validator)


def test_equal_runs_give_equal_text() -> None:
    """The order of names and recordings does not depend on how they arrived."""
    first, second = answer("chat.a", CHAT), answer("chat.b", CHAT)
    facts = {"b": {"y": 1, "x": 2}, "a": 3}
    turned = {"a": 3, "b": {"x": 2, "y": 1}}
    one = record({"sim": run_of(server(), first, second, facts=facts)}, [])
    two = record({"sim": run_of(server(), second, first, facts=turned)}, [])

    assert json_report.dumps(document(one)) == json_report.dumps(document(two))


def test_values_that_json_has_not_become_words() -> None:
    """Infinity, paths, dates and sets in a launcher's facts do not break the report."""
    facts = {"inf": float("inf"), "nan": float("nan"), "set": {"b", "a"}, "date": waivers().started}
    loaded = read_back(record({"sim": run_of(server(), facts=facts)}, []))

    assert loaded["servers"][0]["facts"] == {
        "inf": "inf",
        "nan": "nan",
        "set": ["a", "b"],
        "date": "2026-11-27T20:50:00+00:00",
    }


def test_evidence_is_there_for_what_did_not_pass() -> None:
    """A failing check carries its request, excerpt, log, rerun line and script; a passing one none."""
    results = {row["check"]: row for row in read_back(no_go())["results"]}
    failed = results["tools.stream.arguments-join"]["evidence"]

    assert failed["exchanges"][0]["request"] == "POST /v1/chat/completions"
    assert failed["exchanges"][0]["file"] == "spark-fp8/recordings/tools.required-stream.jsonl"
    assert failed["exchanges"][0]["lines"][-1] == {"text": "[DONE]", "at": 0.57, "left_out": 0}
    assert failed["log"][0].startswith("WARNING")
    assert failed["rerun"] == "pytest --vllm-profile=spark-fp8 --vllm-check=tools.stream.arguments-join"
    assert failed["script"] == "checks/tools.stream.arguments-join.sh"
    assert results["chat.sample.fact-1"]["evidence"] is None


def test_a_check_over_many_exchanges_shows_three_and_counts_the_rest() -> None:
    """Evidence stays readable however many recordings a check judged."""
    results = {row["check"]: row for row in read_back(no_go())["results"]}
    evidence = results["throughput.decode.floor"]["evidence"]

    assert (len(evidence["exchanges"]), len(evidence["curl"]), evidence["left_out"]) == (3, 3, 2)


def test_the_exchange_that_the_reason_names_is_shown() -> None:
    """With many exchanges, the named one and the refused one come before the first."""
    recordings = [answer(f"chat.k{n}", CHAT, status=500 if n == 7 else 200) for n in range(9)]
    row = result(
        "chat.all", Verdict.FAIL, reason="chat.k5: no id", exchanges=tuple(r.key for r in recordings)
    )
    report = read_back(record({"sim": run_of(server(), *recordings)}, [row]))

    shown = [one["key"] for one in report["results"][0]["evidence"]["exchanges"]]
    assert shown == ["chat.k0", "chat.k5", "chat.k7"]


def test_waivers_say_what_became_of_them() -> None:
    """Used, or expired; with the end date."""
    found = {one["check"]: (one["state"], one["until"]) for one in read_back(waivers())["waivers"]}

    assert found == {
        "stream.usage.null-before-final": ("used", "2027-03-31"),
        "chat.envelope.object": ("expired", "2026-10-01"),
    }


def test_families_are_kept_apart() -> None:
    """A speed that is too low is not counted as a fault of conformance."""
    families = read_back(no_go())["families"]

    assert (families["performance"]["fail"], families["conformance"]["fail"]) == (1, 2)


def test_each_profile_has_its_own_answer() -> None:
    """GO for one, NO-GO for the other and for the run."""
    report = read_back(two_profiles())

    assert [(one["name"], one["answer"]) for one in report["profiles"]] == [
        ("sim", "GO"),
        ("rtx5090-awq", "NO-GO"),
    ]
    assert (report["answer"]["answer"], report["answer"]["exit_code"]) == ("NO-GO", 1)


def test_a_failed_boot_has_its_own_answer() -> None:
    """DID NOT BOOT, exit status 20, with the steps to try."""
    report = read_back(RUNS["did-not-boot"]())

    assert (report["answer"]["answer"], report["answer"]["exit_code"]) == ("DID NOT BOOT", 20)
    assert report["boot_failures"][0]["try"][0] == "[server.args] max-model-len = 22000"
