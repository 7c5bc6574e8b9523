"""Greedy answers that differ: by chance, at close calls, or since the server computes something else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.report.compare.difference import Weight
from pytest_vllm.report.compare.greedy import compared, differences
from tests.unit.report.compare.runs import answer, chat, part_of

if TYPE_CHECKING:
    from pytest_vllm.report.compare.difference import Difference
    from pytest_vllm.wire.recording import Recording


def rows(number: int, text: str, *, repeats: int = 3) -> list[Recording]:
    """Answers of this text to so many requests, the first ones sent several times."""
    asks = [{"messages": [f"q{n}"]} for n in range(number)]
    first = [
        chat(f"a.again{n}.{time}", f"{text} {n}", ask=asks[n]) for n in range(10) for time in range(repeats)
    ]
    return [*first, *(chat(f"a.q{n}", f"{text} {n}", ask=ask) for n, ask in enumerate(asks))]


def both(before: list[Recording], after: list[Recording]) -> tuple[dict[str, Any], list[Difference]]:
    found = compared(part_of(before)["observed"], part_of(after)["observed"])
    return found, list(differences(found))


def test_equal_answers_are_no_difference() -> None:
    found, told = both(rows(20, "wide and"), rows(20, "wide and"))

    assert (found["asked"], found["differ"], told) == (20, 0, [])


def test_answers_that_all_differ_are_behaviour_with_the_place() -> None:
    found, (one,) = both(rows(20, "wide and"), rows(20, "wide or"))

    assert (found["differ"], found["rows"][0]["place"], found["rows"][0]["unit"]) == (20, 2, "word")
    assert one.weight is Weight.BEHAVIOUR
    assert "20 of 20 differ, the earliest from word 2 on" in one.after


def test_as_many_as_waver_within_a_run_are_for_information() -> None:
    ask = [{"messages": [f"q{n}"]} for n in range(12)]
    wavering = [chat(f"a.w{n}.{time}", f"x {time}", ask=ask[n]) for n in range(6) for time in range(2)]
    before = [*wavering, *(chat(f"a.s{n}", "x 0", ask=ask[n]) for n in range(6, 12))]
    after = [*wavering, *(chat(f"a.s{n}", f"x {n % 2}", ask=ask[n]) for n in range(6, 12))]
    found, (one,) = both(before, after)

    assert (found["differ"], found["wavered"]) == (3, 12)
    assert one.weight is Weight.INFO


def test_without_repeats_nothing_is_said_about_chance() -> None:
    _, (one,) = both([chat("a.q", "x y")], [chat("a.q", "x z")])

    assert one.weight is Weight.INFO
    assert "is not known" in one.means


def test_a_close_call_is_for_information() -> None:
    def of(word: str) -> Recording:
        tops = [{"logprob": -0.69}, {"logprob": -0.7}]
        told = [{"token": word, "logprob": -0.69, "top_logprobs": tops}]
        return answer("a.q", {"choices": [{"message": {"content": word}, "logprobs": {"content": told}}]})

    found, (one,) = both([of("a")], [of("b")])

    assert (found["near"], one.weight) == (1, Weight.INFO)


def test_a_prompt_that_is_rendered_otherwise_is_behaviour_and_its_answer_not_compared() -> None:
    after = answer("a.q", {"choices": [{"message": {"content": "y"}}], "usage": {"prompt_tokens": 12}})
    found, (one,) = both([chat("a.q", "x")], [after])

    assert (found["asked"], found["prompts_differ"]) == (0, 1)
    assert (one.weight, one.before, one.after) == (Weight.BEHAVIOUR, "9 tokens", "12 tokens")


def test_the_drift_of_log_probabilities() -> None:
    def scored(*values: float) -> Recording:
        body = {"choices": [{"text": "x", "logprobs": {"token_logprobs": [None, *values]}}]}
        return answer("a.q", body, ask={"echo": True}, path="/v1/completions")

    small, (little,) = both([scored(-1.0, -2.0)], [scored(-1.01, -2.0)])
    large, (much,) = both([scored(-1.0, -2.0)], [scored(-1.5, -2.5)])

    assert (small["drift"], little.weight) == (0.005, Weight.INFO)
    assert (large["drift"], much.weight) == (0.5, Weight.BEHAVIOUR)
