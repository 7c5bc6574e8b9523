"""The table of known faults: every row is as its head says, and names things that exist."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pytest_vllm.facts import capabilities, flag_status, version_of, versions
from pytest_vllm.facts import faults as module
from pytest_vllm.facts.faults import Fault, faults, faults_of_check, faults_of_line
from pytest_vllm.preflight.facts import entries
from tests.contract.imports import ROOT

KEYS = {
    "id",
    "versions",
    "when",
    "title",
    "effect",
    "way-round",
    "thread",
    "fixed",
    "severity",
    "log",
    "checks",
    "alone",
}
MUST = {"id", "versions", "when", "title", "effect", "way-round", "thread"}
#: Variables that others than vLLM read.
FOREIGN = {"MAX_JOBS"}
TABLE: list[dict[str, Any]] = tomllib.loads(
    Path(module.__file__).with_name("faults.toml").read_text("utf-8")
)["fault"]


def test_there_are_many() -> None:
    """Sixty or more, each id once."""
    assert len(TABLE) >= 60
    assert [name for name, count in Counter(row["id"] for row in TABLE).items() if count > 1] == []


@pytest.mark.parametrize("row", TABLE, ids=[row["id"] for row in TABLE])
def test_the_keys_of_a_row(row: dict[str, Any]) -> None:
    """Those of the head, with one line of text each."""
    assert MUST <= set(row) <= KEYS
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]+", row["id"])
    assert row["thread"].startswith("https://github.com/")
    assert len(row["title"]) <= 90
    assert not re.search(r"\b0\.\d+", row["title"])
    assert all(
        row[key] and "\n" not in row[key] and not row[key].endswith(".")
        for key in ("title", "effect", "way-round")
    )
    assert row.get("severity", "warning") in ("error", "warning", "note")


@pytest.mark.parametrize("fault", faults(), ids=[one.id for one in faults()])
def test_what_a_row_names_exists(fault: Fault) -> None:
    """Flags in the versions it is about, variables, methods, capabilities and checks."""
    assert re.fullmatch(r">=[\d.]+,<[\d.]+", fault.versions)
    first, last = fault.versions.removeprefix(">=").split(",<")
    assert fault.in_version(first) and not fault.in_version(last)  # noqa: PT018 - two ends of one range
    inside = [first, *(one for one in versions() if fault.in_version(one))]
    for one in fault.when:
        if one.subject == "args":
            assert any(flag_status(one.path[0], version).accepted for version in inside), one.name
        if one.subject == "env":
            assert one.path[0] in entries("environment") or one.path[0] in FOREIGN
        if one.subject == "expect":
            assert one.wanted in capabilities.CAPABILITIES
    known = set(
        re.findall(
            r"^\| `([a-z0-9.-]+)`", (ROOT / "suites" / "CATALOGUE.md").read_text("utf-8"), re.MULTILINE
        )
    )
    assert set(fault.checks) <= known


@pytest.mark.parametrize("fault", [one for one in faults() if one.fixed], ids=lambda one: one.id)
def test_what_is_fixed_is_out_of_range(fault: Fault) -> None:
    """The first version without it does not have it."""
    assert version_of(fault.fixed)
    assert not fault.in_version(fault.fixed)


def test_a_line_and_a_check_find_their_faults() -> None:
    """In the versions that have them, and in no other."""
    line = "(APIServer pid=1) ERROR RustFrontend died with exit code 2"

    assert [one.id for one in faults_of_line(line, "0.22.0")] == ["rust-unknown-flag"]
    assert faults_of_line(line, "0.24.0") == ()
    assert faults_of_line("INFO all is well", "0.22.0") == ()
    assert "hybrid-vision-cache" in [one.id for one in faults_of_check("cache.repeat.hits", "0.28.0")]
    assert faults_of_check("cache.repeat.hits", "latest") == ()


@pytest.mark.parametrize(
    ("name", "says"),
    [("flags.x", "nothing that a condition"), ("model.size", "model has"), ("args", "nothing")],
)
def test_a_condition_that_means_nothing_is_refused(name: str, says: str) -> None:
    """The table cannot hold what nobody evaluates."""
    with pytest.raises(ValueError, match=says):
        module._condition(name, True)
