"""How often one question over and over finds a rare fault, and that it accuses no server of a near-tie."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.wire.recording import Recording, Request
from suites.oracle.exchanges import MORE, TURNS
from suites.oracle.test_repeated import CHATS, OFTEN
from tests.unit.judging import Judgement, checks, judge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATH = "/v1/chat/completions"
RIGHT, WRONG = "one two three", "one twq three"
RUNS = 400
#: Far from a tie, and two candidates that are about as likely.
SURE = {"one": {"one": -0.01, "On": -6.0}, " two": {" two": -0.1, " tw": -4.0}, " three": {" three": -0.2}}
TIED = {**SURE, " two": {" two": -0.7, " twq": -0.9}}


def answer(key: str, text: str, candidates: dict[str, dict[str, float]] | None = None) -> Recording:
    content = [
        {
            "token": token,
            "logprob": max(tops.values()),
            "top_logprobs": [{"token": name, "logprob": value} for name, value in tops.items()],
        }
        for token, tops in (candidates or {}).items()
    ]
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "length",
        "logprobs": {"content": content} if content else None,
    }
    usage = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
    body = {"id": key, "model": "m", "created": 1, "choices": [choice], "usage": usage}
    request = Request("POST", PATH, json={"model": "m", "messages": [], "temperature": 0})
    return Recording(key, request, status=200, chunks=((0.0, json.dumps(body).encode()),))


def keys(prefixes: Sequence[str]) -> Iterator[str]:
    counts = {"oracle.often[": MORE}
    for prefix in prefixes:
        yield from (f"{prefix}{number:03}]" for number in range(counts.get(prefix, TURNS)))


GOOD = {key: answer(key, RIGHT) for key in keys(OFTEN)}
BAD = {key: answer(key, WRONG) for key in keys(OFTEN)}


def said(
    check: str, wrong: set[str], prefixes: Sequence[str], listing: dict[str, dict[str, float]]
) -> Judgement:
    (found,) = [one for one in checks("oracle") if one.spec.id == check]
    recordings = {key: (BAD if key in wrong else GOOD)[key] for key in keys(prefixes)}
    listed = answer("oracle.again-listed", RIGHT, listing)
    return judge(found, {**recordings, listed.key: listed})


@pytest.mark.parametrize(
    ("check", "prefixes", "one_in", "at_least", "at_most"),
    [
        ("oracle.repeated.chat", CHATS, 50, 0.92, 0.98),
        ("oracle.repeated.chat", CHATS, 200, 0.47, 0.60),
        ("oracle.repeated.often", OFTEN, 200, 0.98, 1.0),
    ],
)
def test_the_power_is_what_is_promised(
    check: str, prefixes: list[str], one_in: int, at_least: float, at_most: float
) -> None:
    """P(found) = 1 - (1 - p)^K: 0.952 and 0.529 in the gate, 0.993 in the soak; within what 400 runs tell."""
    drawn = random.Random(14)  # noqa: S311 - drawn alike in every run
    found = 0
    runs = RUNS if prefixes is CHATS else RUNS // 4
    for _ in range(runs):
        wrong = {key for key in keys(prefixes) if drawn.random() < 1 / one_in}
        found += said(check, wrong, prefixes, SURE).verdict == "fail"

    assert at_least <= found / runs <= at_most


def test_a_near_tie_accuses_nobody() -> None:
    assert said("oracle.repeated.chat", {"oracle.again[007]"}, CHATS, TIED).verdict == "pass"
    assert said("oracle.repeated.chat", {"oracle.again[007]"}, CHATS, SURE).verdict == "fail"


def test_nothing_is_judged_without_candidates() -> None:
    assert said("oracle.repeated.chat", {"oracle.again[007]"}, CHATS, {}).verdict == "undecided"
