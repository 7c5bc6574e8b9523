"""A near-tie excuses a difference where it stands, and nothing else."""

from __future__ import annotations

import pytest

from suites.oracle.apis import Choice, Token
from suites.oracle.ties import bent, candidates_of, ends_by_chance, excuse, penalised

#: "a red fox" with " red" and " rad" about as likely, and " fox" sure.
TIED: tuple[Token, ...] = (
    ("a", {"a": -0.01, "b": -5.0}),
    (" red", {" red": -0.7, " rad": -0.9, " re": -4.0}),
    (" fox", {" fox": -0.1, " box": -4.0}),
    ("<|im_end|>", {"<|im_end|>": -0.1, " runs": -3.0}),
)
SAID = Choice("a red fox", tokens=TIED)


@pytest.mark.parametrize("other", ["a rad fox", "a rad box", "a rad"])
def test_texts_that_go_on_with_tied_candidates_are_excused(other: str) -> None:
    assert excuse([SAID], Choice(other), SAID) == "a near-tie"


@pytest.mark.parametrize(
    "other", ["a rod fox", "a red box", "a re", "a red", "", "x red fox", "a red fox runs"]
)
def test_other_differences_are_not(other: str) -> None:
    assert not excuse([SAID], Choice(other), SAID)


def test_a_tie_between_going_on_and_ending_excuses_an_end() -> None:
    tokens = (*TIED[:3], ("<|im_end|>", {"<|im_end|>": -0.7, " runs": -0.8}))

    assert excuse([Choice("a red fox", tokens=tokens)], Choice("a red fox runs"), SAID) == "a near-tie"


def test_a_candidate_that_begins_another_counts() -> None:
    tokens = ((" th", {" th": -0.7, " the": -0.8}), ("in", {"in": -0.1, "ick": -4.0}))

    assert excuse([Choice(" thin", tokens=tokens)], Choice(" the end"), Choice(" thin")) == "a near-tie"


def test_where_marks_are_hidden_a_tie_anywhere_counts() -> None:
    hidden = Choice("red fox", tokens=(("<think>", {"<think>": -0.1}), *TIED))

    assert excuse([hidden], Choice("rod fox"), Choice("red fox")) == "a near-tie"


def test_a_call_is_excused_by_a_tie_anywhere_and_by_nothing_else() -> None:
    call, other = Choice("", calls=(("f", "{}"),)), Choice("", calls=(("g", "{}"),))

    assert excuse([Choice("", tokens=TIED)], call, other) == "a near-tie"
    assert not excuse([Choice("", tokens=TIED[2:])], call, other)


def test_without_candidates_nothing_is_known() -> None:
    assert "lists its candidates" in excuse([Choice("a red fox")], Choice("a rod fox"), SAID)


def test_what_may_not_end_has_no_candidate_that_ends() -> None:
    tokens = ((" x", {"<|im_end|>": -0.01, " x": -5.0, " y": -5.1}),)
    kept = candidates_of(Choice(" x", tokens=tokens), {"ignore_eos": True})

    assert excuse([kept], Choice(" y"), Choice(" x")) == "a near-tie"
    assert not excuse([Choice(" x", tokens=tokens)], Choice(" y"), Choice(" x"))


def test_what_keeps_a_model_from_its_likeliest_tokens_is_known() -> None:
    assert bent({"tool_choice": "required"})
    assert bent({"structured_outputs": {"choice": ["a"]}})
    assert not bent({"tool_choice": "auto", "max_tokens": 5, "ignore_eos": True})


def test_the_same_words_may_cost_otherwise_where_something_is_hidden() -> None:
    """Blanks around a forced call stand in no answer, and are tokens."""
    call = Choice("", calls=(("f", "{}"),), tokens=TIED)

    assert ends_by_chance({"tool_choice": {"type": "function"}}, [SAID])
    assert ends_by_chance({"tool_choice": "auto"}, [call])
    assert not ends_by_chance({"tool_choice": "auto"}, [SAID])
    assert not ends_by_chance({}, [Choice("", calls=(("f", "{}"),), tokens=TIED[2:])])


def test_a_server_that_draws_by_more_than_its_likelihoods_is_known() -> None:
    drawn = Choice(" rad", tokens=((" rad", {" red": -0.7, " rad": -0.9}),))

    assert penalised([SAID, drawn])
    assert not penalised([SAID])
    assert ends_by_chance({}, [drawn])
