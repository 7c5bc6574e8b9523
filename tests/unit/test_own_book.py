"""What becomes of own tests and checks that other plugins run again, or that end early."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_vllm.decide.verdict import Family, Level, Result, Verdict
from pytest_vllm.face.own import OwnBook
from pytest_vllm.face.session import GateSession


def report(when: str, outcome: str, said: str = "") -> pytest.TestReport:
    longrepr: Any = said or None
    return pytest.TestReport("a.py::test", ("a.py", 0, "test"), {}, outcome, longrepr, when)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("phases", "outcome"),
    [
        ([("setup", "passed"), ("call", "passed"), ("teardown", "passed")], "passed"),
        ([("setup", "passed"), ("call", "failed"), ("teardown", "passed")], "failed"),
        ([("setup", "failed"), ("teardown", "passed")], "error"),
        ([("setup", "passed"), ("call", "passed"), ("teardown", "failed")], "error"),
        ([("setup", "skipped"), ("teardown", "passed")], "skipped"),
        ([("setup", "passed"), ("call", "rerun"), ("setup", "passed"), ("call", "passed")], "passed"),
        ([("setup", "passed"), ("call", "rerun"), ("setup", "passed"), ("call", "failed")], "failed"),
        ([("setup", "passed")], ""),
    ],
)
def test_one_test_has_one_outcome(phases: list[tuple[str, str]], outcome: str) -> None:
    book = OwnBook()
    for when, said in phases:
        book.add(report(when, said, "E  it broke" if said == "failed" else ""))

    (found,) = book
    assert found.outcome == outcome
    assert bool(found.traceback) is (outcome in ("failed", "error"))


@pytest.mark.parametrize(
    ("verdicts", "kept"),
    [
        ([Verdict.PASS, Verdict.FAIL, Verdict.PASS], Verdict.FAIL),
        ([Verdict.PASS, Verdict.UNDECIDED], Verdict.UNDECIDED),
        ([Verdict.NOT_RUN, Verdict.PASS], Verdict.PASS),
        ([Verdict.PASS, Verdict.PASS], Verdict.PASS),
    ],
)
def test_a_check_that_is_repeated_counts_once_by_its_worst_verdict(
    verdicts: list[Verdict], kept: Verdict
) -> None:
    session = object.__new__(GateSession)
    session.results = [
        Result("a.b", Level.MUST, Family.CONFORMANCE, verdict, "A fact.", nodeid=f"a[{turn}]")
        for turn, verdict in enumerate(verdicts)
    ]

    assert [one.verdict for one in session.once()] == [kept]
