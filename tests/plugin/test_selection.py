"""Selecting checks works as pytest users expect, with node ids and check ids alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.plugin.running import Gate

CHECK = "profile.model.served"
NODE = "suites/profile/test_expectations.py::test_model_served"


def test_collect_only_boots_nothing(gate: Gate) -> None:
    run = gate("--vllm-profile=sim", "--collect-only", "-q")

    assert run.exit == 0
    assert NODE in run.text
    assert run.folders == []


def test_list_prints_ids_and_facts(gate: Gate) -> None:
    run = gate("--vllm-list", "--vllm-check=profile")

    assert run.exit == 0
    assert "profile.model.served" in run.text
    assert "The model of the profile is in the list of served models." in run.text


def test_a_check_id_selects_one_check(gate: Gate) -> None:
    run = gate("--vllm-profile=sim", f"--vllm-check={CHECK}")

    assert run.exit == 0, run.text
    assert run.verdicts == {CHECK: "pass"}


def test_a_prefix_selects_an_area(gate: Gate) -> None:
    run = gate("--vllm-profile=sim", "--vllm-check=profile")

    assert run.exit == 0, run.text
    assert all(check.startswith("profile.") for check in run.verdicts)
    assert len(run.verdicts) == 6


def test_a_suite_as_reports_list_it_selects_its_checks(gate: Gate) -> None:
    """Reports count checks of `streaming`, whose ids begin with `stream`."""
    suite, ids = gate("--vllm-list", "--vllm-check=streaming"), gate("--vllm-list", "--vllm-check=stream")

    assert suite.exit == 0, suite.text
    assert "stream.usage.final-chunk" in suite.text
    assert [line for line in suite.text.splitlines() if line.endswith(" checks")] == [
        line for line in ids.text.splitlines() if line.endswith(" checks")
    ]


def test_a_misspelt_suite_is_named(gate: Gate) -> None:
    run = gate("--vllm-profile=sim", "--vllm-check=streming")

    assert run.exit == 5
    assert "--vllm-check=streming names no check; did you mean streaming" in run.text


def test_a_node_id_selects_one_check(gate: Gate) -> None:
    run = gate("--vllm-profile=sim", NODE)

    assert run.exit == 0, run.text
    assert run.verdicts == {CHECK: "pass"}


def test_keyword_expressions_select(gate: Gate) -> None:
    run = gate("--vllm-profile=sim", "-k", "test_model_served")

    assert run.exit == 0, run.text
    assert run.verdicts == {CHECK: "pass"}


def test_nothing_selected_is_never_green(gate: Gate) -> None:
    run = gate("--vllm-profile=sim", "-k", "no_such_check")

    assert run.exit == 5


def test_last_failed_runs_what_failed(gate: Gate) -> None:
    profile = 'extends = "sim"\n[expect]\nversion = "0.1.2"\n'
    select = ("--vllm-profile=./wrong.toml", "--vllm-check=profile")
    first = gate(*select, files={"wrong.toml": profile})
    second = gate(*select, "--lf")

    assert (first.exit, second.exit) == (1, 1)
    assert second.verdicts == {"profile.version.expected": "fail"}
