"""Waivers of today's failures: each with a thread, a range and an end, and none without."""

from __future__ import annotations

import datetime as dt
import tomllib

import pytest

from pytest_vllm.facts.faults import faults
from pytest_vllm.facts.timeline import versions
from pytest_vllm.profile.model import Waiver
from pytest_vllm.report.compare.waivers import UntrackedError, proposals, undecided
from tests.unit.report.compare.runs import part_of

UNTIL = dt.date(2027, 3, 1)
ISSUE = "https://example.org/issues/1"


def test_a_waiver_is_one_that_a_profile_takes() -> None:
    part = part_of(results={"a.b": "fail", "a.c": "pass", "a.d": "advisory"})
    (one,) = proposals(part, issue=ISSUE, versions="", until=UNTIL)
    (row,) = tomllib.loads(one.toml)["waive"]
    read = Waiver.model_validate(row)

    assert (read.check, read.issue, read.versions, read.until) == ("a.b", ISSUE, "==0.32.0", UNTIL)
    assert "a.b holds" in read.reason


def test_all_cases_of_a_check_share_a_waiver_and_some_do_not() -> None:
    part = part_of(results={"a.b[x]": "fail", "a.b[y]": "fail", "a.c[x]": "fail", "a.c[y]": "pass"})

    assert [one.check for one in proposals(part, issue=ISSUE, versions="", until=UNTIL)] == ["a.b", "a.c[x]"]


def test_a_failure_without_a_thread_is_refused_by_name() -> None:
    with pytest.raises(UntrackedError, match=r"a\.b"):
        proposals(part_of(results={"a.b": "fail"}), issue="", versions="", until=UNTIL)


def test_a_known_fault_brings_its_thread() -> None:
    fault, version = next((f, v) for f in faults() if f.checks for v in versions() if f.in_version(v))
    part = part_of(results={fault.checks[0]: "fail"}, version=version)
    (one,) = proposals(part, issue="", versions="", until=UNTIL)

    assert one.issue in {known.thread for known in faults()}


def test_an_unknown_version_needs_a_range() -> None:
    with pytest.raises(ValueError, match="--versions"):
        proposals(part_of(results={"a.b": "fail"}, version=""), issue=ISSUE, versions="", until=UNTIL)


def test_what_was_undecided_is_named_and_not_waived() -> None:
    part = part_of(results={"a.b": "undecided"})

    assert proposals(part, issue=ISSUE, versions="", until=UNTIL) == []
    assert undecided(part) == ["a.b"]
