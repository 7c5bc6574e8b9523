"""No worse than before: what failed before does not count, everything else does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_vllm.decide.baseline import Baseline, compare, raw
from pytest_vllm.decide.noworse import excused, lost, told, unneeded, worsened
from pytest_vllm.decide.verdict import Answer, Family, Level, Result, Verdict, decide
from pytest_vllm.face.compared import worse_of
from pytest_vllm.report.compare.figures import ALONE

MUST = Result("a.b", Level.MUST, Family.CONFORMANCE, Verdict.FAIL, "A fact.", reason="seen", profile="p")


def before(verdict: str) -> Baseline:
    return Baseline("p", "0.31.0", "2026-11-20", simulated=False, verdicts={"a.b": verdict})


@pytest.mark.parametrize(
    ("was", "now", "then"),
    [
        ("fail", "fail", "waived"),
        ("advisory", "fail", "waived"),
        ("pass", "fail", "fail"),
        ("waived", "fail", "fail"),
        ("undecided", "fail", "fail"),
        ("not-run", "fail", "fail"),
        ("undecided", "undecided", "waived"),
        ("fail", "undecided", "waived"),
        ("pass", "undecided", "undecided"),
        ("pass", "not-run", "undecided"),
        ("fail", "not-run", "not-run"),
        ("fail", "pass", "pass"),
    ],
)
def test_what_counts(was: str, now: str, then: str) -> None:
    assert excused(replace(MUST, verdict=Verdict(now)), before(was)).verdict == then


def test_a_check_that_the_baseline_does_not_know_counts() -> None:
    assert excused(MUST, replace(before("fail"), verdicts={})).verdict is Verdict.FAIL
    assert excused(MUST, None).verdict is Verdict.FAIL


def test_advice_counts_only_under_strict_and_is_excused_there() -> None:
    should = replace(MUST, level=Level.SHOULD, verdict=Verdict.ADVISORY)

    assert excused(should, before("advisory")).verdict is Verdict.ADVISORY
    assert excused(should, before("advisory"), strict=True).verdict is Verdict.WAIVED
    assert excused(should, before("pass"), strict=True).verdict is Verdict.ADVISORY


def test_what_is_excused_says_so_and_is_saved_as_what_it_is() -> None:
    found = excused(MUST, before("fail"))

    assert "2026-11-20 (vLLM 0.31.0)" in found.reason
    assert "seen" in found.reason
    assert raw(found).verdict is Verdict.FAIL
    assert compare([raw(found)], before("fail")).fixed == ()
    assert told([found, MUST]).startswith("no worse than the baseline: 1 ")
    assert told([MUST]) == ""


def test_a_waiver_that_nothing_needs_does_not_count() -> None:
    assert unneeded(MUST).verdict is Verdict.WAIVED


def test_checks_that_held_and_were_not_asked_are_a_doubt() -> None:
    assert "a.b" in lost([], before("pass"))
    assert lost([], before("fail")) == ""
    assert lost([MUST], before("pass")) == ""


def test_what_is_worse_beside_the_checks_decides_and_says_what_the_checks_say() -> None:
    good = decide([replace(MUST, verdict=Verdict.PASS)])
    bad = decide([MUST])

    assert worsened(good, []) is good
    assert worsened(good, ["ttft is slower"]).answer is Answer.NO_GO
    assert worsened(good, ["ttft is slower"]).why == (
        "worse than the older server: ttft is slower; of the checks alone: 1 check decided, none failed"
    )
    assert worsened(bad, [str(n) for n in range(7)]).why.endswith("4 and 2 more; 1 MUST check failed")


def test_only_what_was_measured_in_turns_is_slower_for_sure() -> None:
    """Recorded exchanges are asked of one server after the other, on a machine that does other things too."""
    slower = {"weight": "speed", "area": "speed", "means": "slower: 1.6 times (1.3 to 2.0)"}
    rows = [{**slower, "what": f"seconds in all of {ALONE}"}, {**slower, "what": "tpot of throughput.one"}]

    assert worse_of({"differences": rows}) == [f"tpot of throughput.one is {slower['means']}"]
