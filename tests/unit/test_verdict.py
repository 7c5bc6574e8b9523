"""The decision lattice: what is known to be broken outweighs what is not known."""

from __future__ import annotations

import pytest

from pytest_vllm.decide.verdict import Answer, Family, Level, OwnTests, Result, Verdict, decide, grade


def result(verdict: Verdict, level: Level = Level.MUST, check: str = "a.b") -> Result:
    return Result(check, level, Family.CONFORMANCE, verdict, fact="A fact.")


@pytest.mark.parametrize(
    ("level", "held", "verdict"),
    [
        (Level.MUST, True, Verdict.PASS),
        (Level.MUST, False, Verdict.FAIL),
        (Level.SHOULD, True, Verdict.PASS),
        (Level.SHOULD, False, Verdict.ADVISORY),
        (Level.INFO, False, Verdict.ADVISORY),
    ],
)
def test_only_a_must_check_fails(level: Level, held: bool, verdict: Verdict) -> None:
    assert grade(level, held=held) is verdict


@pytest.mark.parametrize(
    ("verdicts", "answer", "exit_code"),
    [
        ([Verdict.PASS], Answer.GO, 0),
        ([Verdict.PASS, Verdict.ADVISORY, Verdict.WAIVED, Verdict.NOT_RUN], Answer.GO, 0),
        ([Verdict.PASS, Verdict.FAIL], Answer.NO_GO, 1),
        ([Verdict.PASS, Verdict.UNDECIDED], Answer.UNDECIDED, 21),
        ([Verdict.FAIL, Verdict.UNDECIDED], Answer.NO_GO, 1),
        ([], Answer.NOTHING_RAN, 5),
        ([Verdict.NOT_RUN], Answer.NOTHING_RAN, 5),
    ],
)
def test_the_answer_of_a_run(verdicts: list[Verdict], answer: Answer, exit_code: int) -> None:
    decision = decide(result(verdict) for verdict in verdicts)

    assert (decision.answer, decision.exit_code) == (answer, exit_code)


@pytest.mark.parametrize("verdicts", [[Verdict.PASS], [Verdict.UNDECIDED], [Verdict.NOT_RUN], []])
def test_a_server_that_died_is_no_go_whatever_was_selected(verdicts: list[Verdict]) -> None:
    decision = decide((result(verdict) for verdict in verdicts), deaths=["sim: the server ended"])

    assert (decision.answer, decision.why) == (Answer.NO_GO, "sim: the server ended")


def test_an_undecided_should_check_does_not_block() -> None:
    rows = [result(Verdict.PASS), result(Verdict.UNDECIDED, Level.SHOULD)]

    assert decide(rows).answer is Answer.GO
    assert decide(rows, strict=True).answer is Answer.UNDECIDED


def test_only_undecided_should_checks_are_not_green() -> None:
    assert decide([result(Verdict.UNDECIDED, Level.SHOULD)]).answer is Answer.NOTHING_RAN


def test_strict_counts_an_advisory() -> None:
    rows = [result(Verdict.PASS), result(Verdict.ADVISORY, Level.SHOULD)]

    assert decide(rows, strict=True).answer is Answer.NO_GO


def test_own_failing_tests_are_no_go() -> None:
    decision = decide([result(Verdict.PASS)], own=OwnTests(failed=2))

    assert (decision.answer, decision.why) == (Answer.NO_GO, "2 of your own tests failed")


@pytest.mark.parametrize(
    ("verdicts", "own", "answer", "exit_code"),
    [
        ([], OwnTests(passed=6, asking=6, alone=True), Answer.NO_VERDICT, 0),
        ([], OwnTests(passed=6, asking=6, alone=True, counting=True), Answer.GO, 0),
        ([], OwnTests(passed=6, asking=6, counting=True), Answer.NOTHING_RAN, 5),
        ([], OwnTests(passed=6, alone=True, counting=True), Answer.NOTHING_RAN, 5),
        ([], OwnTests(idle=2, alone=True), Answer.NO_VERDICT, 0),
        ([], OwnTests(idle=2, alone=True, counting=True), Answer.NOTHING_RAN, 5),
        ([], OwnTests(alone=True), Answer.NOTHING_RAN, 5),
        ([Verdict.NOT_RUN], OwnTests(passed=6, asking=6, alone=True), Answer.NO_VERDICT, 0),
        ([Verdict.NOT_RUN], OwnTests(passed=6, asking=6, alone=True, counting=True), Answer.NOTHING_RAN, 5),
        ([Verdict.NOT_RUN], OwnTests(idle=6, alone=True), Answer.NOTHING_RAN, 5),
        ([Verdict.UNDECIDED], OwnTests(passed=6, asking=6, alone=True, counting=True), Answer.UNDECIDED, 21),
        ([Verdict.PASS], OwnTests(passed=6, failed=1, alone=True, counting=True), Answer.NO_GO, 1),
    ],
)
def test_what_own_tests_answer(
    verdicts: list[Verdict], own: OwnTests, answer: Answer, exit_code: int
) -> None:
    decision = decide((result(verdict) for verdict in verdicts), own=own)

    assert (decision.answer, decision.exit_code) == (answer, exit_code)


def test_counted_own_tests_are_named_as_such() -> None:
    own = OwnTests(passed=8, asking=6, alone=True, counting=True)

    assert decide([], own=own).why == "6 own tests, 0 checks"
    assert decide([result(Verdict.PASS)], own=own).why == "1 check decided, none failed; 8 own tests passed"


def test_why_counts_the_failing_must_checks() -> None:
    assert decide([result(Verdict.FAIL)]).why == "1 MUST check failed"
    assert decide([result(Verdict.FAIL), result(Verdict.FAIL)]).why == "2 MUST checks failed"


def test_the_likeliest_area_comes_first() -> None:
    def row(area: str, verdict: Verdict) -> Result:
        return Result(f"{area}.x", Level.MUST, Family.CONFORMANCE, verdict, "A fact.", area=area)

    chat = [row("chat", Verdict.FAIL), *[row("chat", Verdict.PASS)] * 9]
    tools = [row("tools", Verdict.FAIL), row("tools", Verdict.FAIL), row("tools", Verdict.UNDECIDED)]

    assert [r.area for r in decide([*chat, *tools]).failed] == ["tools", "tools", "chat"]
