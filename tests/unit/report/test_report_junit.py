"""JUnit properties, and answers under --vllm-strict."""

from __future__ import annotations

from pytest_vllm.decide.verdict import Level, Verdict, decide
from pytest_vllm.report import junit
from tests.golden.sample_parts import record, result, run_of, server
from tests.unit.report.documents import read_back


def test_junit_properties_name_the_check_and_the_run() -> None:
    """Id, level, family, verdict, profile, simulated; and the answer of the run."""
    row_ = result("chat.x", Verdict.FAIL, level=Level.MUST, observations={"key": "reasoning"})

    assert junit.properties(row_, simulated=True) == [
        ("vllm.check", "chat.x"),
        ("vllm.level", "MUST"),
        ("vllm.family", "conformance"),
        ("vllm.verdict", "fail"),
        ("vllm.profile", "sim"),
        ("vllm.simulated", "true"),
        ("vllm.observed.key", "reasoning"),
    ]
    assert junit.suite_properties(record({"sim": run_of(server())}, [row_])) == [
        ("vllm.run", "20261127-2050-7c1e"),
        ("vllm.answer", "NO-GO"),
        ("vllm.exit_code", "1"),
        ("vllm.simulated", "true"),
        ("vllm.server.sim", "0.32.0, sim, qwen3-30b"),
    ]


def test_the_decision_of_a_profile_follows_strict() -> None:
    """Under --vllm-strict an advisory check makes the profile NO-GO as well."""
    rows = (result("chat.x", Verdict.ADVISORY, reason="r"),)
    strict = record({"sim": run_of(server())}, rows, decision=decide(rows, strict=True), strict=True)

    assert [one["answer"] for one in read_back(strict)["profiles"]] == ["NO-GO"]
