"""Greedy answers are kept as prints: no text of them, and the place where two part."""

from __future__ import annotations

import json

from pytest_vllm.report.compare.answers import Said, alone, texts
from pytest_vllm.report.compare.prints import LONGEST, chain, parted
from tests.unit.report.compare.runs import answer, chat, part_of, run_of, stream


def test_chains_part_where_the_texts_do() -> None:
    one, other = chain(["the", "sea", "is", "wide"]), chain(["the", "sea", "was", "deep"])

    assert parted(one, other) == 2
    assert parted(one, chain(["the", "sea", "is", "wide"])) is None
    assert parted(one, chain(["the", "sea", "is"])) == 3


def test_a_long_text_has_a_bounded_chain_and_still_differs_at_its_end() -> None:
    one, other = ["a"] * (LONGEST + 50), [*["a"] * (LONGEST + 49), "b"]

    assert len(chain(one)) < 3 * LONGEST
    assert parted(chain(one), chain(other)) == LONGEST


def test_no_text_of_prompts_or_answers_is_kept() -> None:
    private = "the-launch-code-is-8812"
    rows = [
        chat("ours.secret", private, ask={"messages": [private]}, reasoning=private),
        stream("ours.stream", {"role": "assistant"}, {"content": private}),
        answer(
            "ours.refused", {"error": {"message": f"bad: {private}", "type": "BadRequestError"}}, status=400
        ),
    ]

    assert "8812" not in json.dumps(run_of(part_of(rows)))


def test_sampled_answers_and_those_that_were_cut_off_are_left_out() -> None:
    rows = [chat("a.hot", "x", ask={"temperature": 1}), chat("a.cut", "x").with_response(aborted=True)]

    assert texts(rows, set()) == {}


def test_equal_requests_share_an_entry_that_counts_their_answers() -> None:
    ask = {"messages": ["same"]}
    rows = [chat("a.one", "x y", ask=ask), chat("a.two", "x y", ask=ask), chat("a.three", "x z", ask=ask)]
    (row,) = texts(rows, {"a.two"}).values()
    said = Said.of(row)

    assert (said.key, said.prompt, said.lone, sorted(said.texts.values())) == ("a.one", 9, True, [1, 2])


def test_a_stream_says_what_the_whole_answer_says() -> None:
    whole = texts([chat("a.one", "wide and deep")], set())
    parts = texts(
        [stream("a.one", {"role": "assistant"}, {"content": "wide a"}, {"content": "nd deep"})], set()
    )

    assert [Said.of(row).texts for row in whole.values()] == [Said.of(row).texts for row in parts.values()]


def test_tokens_and_close_calls_are_known_where_the_answer_tells_them() -> None:
    tops = [[-0.1, -4.0], [-0.69, -0.7]]
    told = [
        {"token": word, "logprob": top[0], "top_logprobs": [{"logprob": one} for one in top]}
        for word, top in zip(("a", "b"), tops, strict=True)
    ]
    body = {"choices": [{"message": {"content": "ab"}, "logprobs": {"content": told}}]}
    (row,) = texts([answer("a.one", body)], set()).values()

    assert (Said.of(row).by_token, Said.of(row).near) == (True, [1])


def test_alone_is_what_nothing_else_ran_beside() -> None:
    spans = {"first": (0.0, 1.0), "beside": (2.0, 2.0), "within": (3.0, 0.5), "last": (5.0, 1.0)}
    rows = [
        chat(key, "x").with_response(sent=sent, seconds=seconds) for key, (sent, seconds) in spans.items()
    ]

    assert alone(rows) == {"first", "last"}
