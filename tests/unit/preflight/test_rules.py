"""Every rule fires on a profile that has its fault, and is silent on one that has not."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_vllm.preflight.rule import RULES, Severity
from tests.unit.preflight.building import CASES, found, rules_of

ROWS: list[dict[str, Any]] = CASES["case"]
IDS = [f"{row['rule']}-{index}" for index, row in enumerate(ROWS)]


def test_the_good_profile_is_good() -> None:
    """Nothing at all is found in it, so each row shows its own fault."""
    assert [one.text for one in found()] == []


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_rule_fires(row: dict[str, Any]) -> None:
    """On the bad profile, with a message that is one line and names a key."""
    spoken = [one for one in found(row["bad"], row.get("without")) if one.rule == row["rule"]]

    assert spoken
    assert all("\n" not in one.text and one.key and one.observed for one in spoken)


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_rule_is_silent(row: dict[str, Any]) -> None:
    """On the good one."""
    missing = row.get("without") if "good" in row else None

    assert row["rule"] not in rules_of(found(row.get("good", ""), missing))


def test_every_rule_has_a_row() -> None:
    """No rule is without a test, no row without a rule.

    `test_known.py` tries the table of known faults, `test_judged.py` what vLLM itself says (`flags.asked`).
    """
    elsewhere = {name for name in RULES if name.startswith("known.")} | {"flags.asked"}

    assert {row["rule"] for row in ROWS} == RULES.keys() - elsewhere


def test_there_are_many() -> None:
    """At least eighty, each with a source and one line of summary."""
    assert len(RULES) >= 80
    assert [one.name for one in RULES.values() if not one.source or len(one.summary) > 110] == []


def test_what_a_newer_release_may_know_is_not_judged() -> None:
    """Flag, parsers, back end and cache type: warnings that say so, no errors."""
    overlay = """
server.image = "vllm/vllm-openai:v9.1.0"
server.args.brand-new-flag = 3
server.args.tool-call-parser = "tomorrow"
server.args.reasoning-parser = "tomorrow"
server.args.attention-backend = "TOMORROW"
server.args.kv-cache-dtype = "int1"
"""
    spoken = [one for one in found(overlay) if "not known to pytest-vllm" in one.observed]

    assert {one.rule for one in spoken} == {
        "flags.unknown",
        "parsers.tool-unknown",
        "parsers.reasoning-unknown",
        "backends.attention",
        "quantisation.cache-dtype",
    }
    assert {one.severity for one in spoken} == {Severity.WARNING}


def test_an_unknown_version_makes_no_error_of_a_guess() -> None:
    """The facts of the newest version are applied, and what rests on them is a warning at most."""
    overlay = 'server.image = "vllm/vllm-openai:latest"\nserver.args.enable-eplb = true'
    spoken = [one for one in found(overlay) if one.rule == "parallel.balance-alone"]

    assert [one.severity for one in spoken] == [Severity.WARNING]


def test_a_flag_that_came_back() -> None:
    """Where the version is a guess, those between that do not know it are named."""
    overlay = 'server.image = "vllm/vllm-openai:latest"\nserver.args.disable-log-requests = true'
    said = [str(one) for one in found(overlay) if one.rule == "flags.deprecated"]

    assert any("unknown flag in 0.17-0.32" in one for one in said), said
