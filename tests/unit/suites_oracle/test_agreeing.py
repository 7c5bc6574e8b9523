"""Two ways to the same figures: what rounding explains is allowed, what it does not is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_vllm.wire.recording import Recording, Request
from suites.crowd.kinds import exact
from suites.logprobs.accounts import both, foreign, misplaced
from suites.oracle.drift import apart
from suites.tools.test_every import test_ids as ids_told
from suites.usage.test_every import test_thought as thought_told
from tests.unit.judging import Played
from tests.unit.suites_oracle.test_every import chat

COMPLETIONS = "/v1/completions"


def completion(asked: dict[str, Any], choice: dict[str, Any], prompt_tokens: int = 3) -> Recording:
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 1, "total_tokens": prompt_tokens + 1}
    made = {"index": 0, "text": "a", "finish_reason": "length", **choice}
    body = {"id": "x", "created": 1, "model": "m", "choices": [made], "usage": usage}
    request = Request("POST", COMPLETIONS, json={"model": "m", **asked})
    headers = (("content-type", "application/json"),)
    return Recording("a.1", request, 200, headers, ((0.1, json.dumps(body).encode()),))


def test_rounding_goes_either_way_and_a_drift_does_not() -> None:
    values = [-0.4 - 0.3 * number for number in range(20)]
    noisy = [(value, value + (0.1 if at % 2 else -0.1)) for at, value in enumerate(values)]
    drifted = [(value * 1.05, value) for value in values]

    assert not apart(noisy, exact=False)
    assert apart(noisy, exact=True)
    assert "nats together" in apart(drifted, exact=False)
    assert not apart([], exact=True)


def test_scores_of_other_tokens_are_far_apart() -> None:
    assert "nats per token" in apart([(-0.1, -3.0), (-2.0, -0.2)], exact=False)


def test_a_token_has_one_score() -> None:
    told = {"tokens": ["a"], "token_logprobs": [-1.2], "top_logprobs": [{"a": -1.0, "b": -2.0}]}
    (row,) = both(completion({"prompt": "x", "logprobs": 2}, {"logprobs": told}))

    assert row == ("a", -1.2, -1.0)


def test_the_likelier_candidate_has_the_lower_rank() -> None:
    right = {"5": {"logprob": -2.0, "rank": 2}, "6": {"logprob": -0.2, "rank": 1}}
    wrong = {"5": {"logprob": -2.0, "rank": 1}, "6": {"logprob": -0.2, "rank": 1}}
    tied = {"5": {"logprob": -0.7, "rank": 2}, "6": {"logprob": -0.7, "rank": 2}}

    assert not misplaced(right)
    assert misplaced(wrong)
    assert not misplaced(tied)


def entry(token: int, text: str) -> dict[str, Any]:
    return {str(token): {"logprob": -1.0, "rank": 1, "decoded_token": text}}


def test_a_prompts_scores_are_its_own() -> None:
    mine = completion({"prompt": [1, 2, 3]}, {})
    words = completion({"prompt": "one two three"}, {})
    named = completion({"prompt": "größer"}, {})

    assert not foreign(mine, [None, entry(2, "b"), entry(3, "c")])
    assert "not its own at [2]" in foreign(mine, [None, entry(2, "b"), entry(9, "z")])
    assert "2 tokens for a prompt of 3" in foreign(mine, [None, entry(2, "b")])
    assert not foreign(words, [None, entry(2, " two"), entry(3, " three")])
    assert "reads" in foreign(words, [None, entry(2, " four"), entry(3, " five")])
    assert not foreign(named, [None, entry(2, "grö"), entry(3, "sser")])


def test_what_is_determined_is_known_for_any_model() -> None:
    assert exact("bias", ["hello hello hello"])
    assert exact("bias", ["oooo"])
    assert not exact("bias", ["hello there"])
    assert not exact("bias", [""])
    assert exact("stop", ["alpha beta "])
    assert not exact("stop", ["alpha beta gamma"])
    assert exact("json", ['\n"crane"'])
    assert not exact("json", ["crane"])
    assert exact("regex", ["stork 17", "stork 17"])
    assert exact("greedy", ["whatever it says"])


def test_a_call_without_an_id_belongs_to_nothing() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    ids_told(vllm_recordings=chat({}, {"content": None, "tool_calls": [call]}, "tool_calls"))
    nameless = [call, {**call, "id": None}]
    with pytest.raises(AssertionError, match=r"a\.0"):
        ids_told(vllm_recordings=chat({}, {"content": None, "tool_calls": nameless}, "tool_calls"))


@pytest.mark.parametrize(("thoughts", "right"), [(0, True), (3, True), (4, False)])
def test_an_answer_with_text_is_not_reasoning_alone(thoughts: int, right: bool) -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": thoughts}}
    one = completion({"prompt": "x"}, {})
    body = json.loads(one.body)
    body["usage"] |= {"completion_tokens": 4, "total_tokens": 7, **details}
    played = Played(
        {"a.1": one.__class__(one.key, one.request, 200, one.headers, ((0.1, json.dumps(body).encode()),))}
    )
    if right:
        thought_told(vllm_recordings=played)  # type: ignore[arg-type]
        return
    with pytest.raises(AssertionError, match="4 of 4"):
        thought_told(vllm_recordings=played)  # type: ignore[arg-type]
