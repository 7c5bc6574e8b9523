"""A baseline says what broke, what was fixed, what is new and what is gone."""

from __future__ import annotations

import pytest

from pytest_vllm.decide.baseline import Baseline, BaselineError, compare, from_json, take, to_json
from pytest_vllm.decide.verdict import Family, Level, Result, Verdict


def result(check: str, verdict: Verdict) -> Result:
    return Result(check, Level.MUST, Family.CONFORMANCE, verdict, "A fact.", profile="p")


BEFORE = [result("a.held", Verdict.PASS), result("b.failed", Verdict.FAIL), result("c.gone", Verdict.PASS)]
NOW = [result("a.held", Verdict.FAIL), result("b.failed", Verdict.PASS), result("d.new", Verdict.PASS)]


def baseline() -> Baseline:
    return take(BEFORE, profile="p", version="0.31.0", taken="2026-11-20", simulated=False)


def test_a_comparison_names_every_change() -> None:
    changed = compare(NOW, baseline())

    assert (changed.broken, changed.fixed) == (("a.held",), ("b.failed",))
    assert (changed.new, changed.gone) == (("d.new",), ("c.gone",))


def test_a_partial_run_misses_nothing() -> None:
    assert compare(NOW, baseline(), partial=True).gone == ()


def test_undecided_after_a_pass_is_broken() -> None:
    assert compare([result("a.held", Verdict.UNDECIDED)], baseline(), partial=True).broken == ("a.held",)


def test_what_was_not_asked_before_is_not_fixed() -> None:
    before = take(
        [result("a.held", Verdict.NOT_RUN)], profile="p", version="", taken="2026-11-20", simulated=False
    )

    assert compare([result("a.held", Verdict.PASS)], before).fixed == ()


def test_a_baseline_survives_its_file() -> None:
    assert from_json(to_json([baseline()]))["p"] == baseline()


@pytest.mark.parametrize("body", [{}, [], {"format": "other"}, None])
def test_another_file_is_refused(body: object) -> None:
    with pytest.raises(BaselineError, match="it is not a baseline"):
        from_json(body)


def test_a_newer_baseline_is_refused() -> None:
    with pytest.raises(BaselineError, match="update pytest-vllm"):
        from_json({"format": "pytest-vllm-baseline", "version": 4, "profiles": {}})
