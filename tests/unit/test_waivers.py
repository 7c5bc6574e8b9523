"""A waiver excuses a known failure, for named versions, until a date, and only while it is needed."""

from __future__ import annotations

import datetime as dt

import pytest

from pytest_vllm.decide.verdict import Family, Level, Result, Verdict
from pytest_vllm.decide.waivers import apply_waivers, holding, in_range, stale_waivers
from pytest_vllm.profile.model import Waiver
from pytest_vllm.wire.server import Capability, Server

TODAY = dt.date(2026, 11, 27)


def result(verdict: Verdict, check: str = "stream.usage.null") -> Result:
    return Result(check, Level.MUST, Family.CONFORMANCE, verdict, "A fact.", reason="seen", profile="p")


def waiver(check: str = "stream.usage.null", until: dt.date = dt.date(2027, 1, 1)) -> Waiver:
    return Waiver(
        check=check, reason="known", issue="vllm-project/vllm#1", versions=">=0.27,<0.34", until=until
    )


@pytest.mark.parametrize(
    ("version", "inside"),
    [
        ("0.27.0", True),
        ("0.32.0", True),
        ("0.34.0", False),
        ("0.26.1", False),
        ("0.27.1+cpu", True),
        ("", False),
    ],
)
def test_a_version_is_in_range(version: str, inside: bool) -> None:
    assert in_range(version, ">=0.27,<0.34") is inside


def test_a_matching_waiver_waives() -> None:
    judged = apply_waivers(result(Verdict.FAIL), [waiver()], "0.32.0", TODAY)

    assert judged.verdict is Verdict.WAIVED
    assert judged.reason == "known (vllm-project/vllm#1, until 2027-01-01); seen"


@pytest.mark.parametrize("version", ["0.26.0", "0.34.0"])
def test_another_version_is_not_waived(version: str) -> None:
    assert apply_waivers(result(Verdict.FAIL), [waiver()], version, TODAY).verdict is Verdict.FAIL


def test_an_expired_waiver_fails_and_says_so() -> None:
    judged = apply_waivers(result(Verdict.FAIL), [waiver(until=dt.date(2026, 11, 26))], "0.32.0", TODAY)

    assert judged.verdict is Verdict.FAIL
    assert "its waiver ended on 2026-11-26" in judged.reason


def test_a_waiver_of_the_check_covers_its_cases() -> None:
    failing = result(Verdict.FAIL, "errors.bad[a]")

    assert apply_waivers(failing, [waiver("errors.bad")], "0.32.0", TODAY).verdict is Verdict.WAIVED
    assert apply_waivers(failing, [waiver("errors.bad[b]")], "0.32.0", TODAY).verdict is Verdict.FAIL


def test_a_waiver_never_touches_a_pass_or_an_undecided() -> None:
    for verdict in (Verdict.PASS, Verdict.UNDECIDED, Verdict.NOT_RUN):
        assert apply_waivers(result(verdict), [waiver()], "0.32.0", TODAY).verdict is verdict


def test_a_waiver_that_no_longer_matches_is_a_failure() -> None:
    stale = stale_waivers([result(Verdict.PASS)], [waiver()], "0.32.0", "p")

    assert [(r.check, r.verdict) for r in stale] == [("waiver.stream.usage.null", Verdict.FAIL)]


@pytest.mark.parametrize("verdict", [Verdict.WAIVED, Verdict.FAIL, Verdict.UNDECIDED, Verdict.NOT_RUN])
def test_a_waiver_is_not_stale_while_its_check_is_not_known_to_pass(verdict: Verdict) -> None:
    assert stale_waivers([result(verdict)], [waiver()], "0.32.0", "p") == []


def test_a_waiver_of_an_unselected_check_is_not_stale() -> None:
    assert stale_waivers([result(Verdict.PASS, "other.check")], [waiver()], "0.32.0", "p") == []


@pytest.mark.parametrize(("present", "count"), [(True, 2), (False, 1)])
def test_a_waiver_of_a_capability_holds_where_it_is(present: bool, count: int) -> None:
    """Elsewhere it neither waives nor grows stale; one that names no capability holds everywhere."""
    able = Server("http://x", "m", capabilities={"reasoning": Capability("reasoning", present, "probed")})
    named = waiver().model_copy(update={"capability": "reasoning"})

    assert len(holding([waiver(), named], able)) == count


def test_a_misspelt_capability_is_refused() -> None:
    with pytest.raises(ValueError, match="reasoning"):
        Waiver.model_validate({**waiver().model_dump(), "capability": "reasonning"})
