"""How much is asked: of a slow server less, and of prompts one of each kind."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_vllm.declare.exchanges import EXCHANGES
from pytest_vllm.wire.recording import NotRun, Recording, Request
from pytest_vllm.wire.server import Server
from suites.oracle import exchanges
from suites.oracle.counting import kind_of
from suites.oracle.test_repeated import in_how_many

SERVER = Server("http://127.0.0.1:1", "m", max_num_seqs=32)
TURNS = range(exchanges.TURNS)


def asked(id_: str, seconds: float, at: int) -> bool:
    """Whether a server that takes so long for an answer is asked for the one in this place."""
    spec = EXCHANGES[id_]
    once = Recording(spec.after[0], Request("POST", "/x"), status=200, seconds=seconds)
    given: dict[str, Any] = {spec.cases[0]: {"at": at}, spec.after[0]: once}
    try:
        spec.build(server=SERVER, **given)
    except NotRun:
        return False
    return True


@pytest.mark.parametrize(("seconds", "most"), [(0.1, 150), (1.0, 150), (4.0, 80), (100.0, 3), (1000.0, 0)])
def test_a_slow_server_is_asked_as_often_as_its_time_allows(seconds: float, most: int) -> None:
    both = ("oracle.again", "oracle.again-stream")

    assert sum(asked(id_, seconds, at) for id_ in both for at in TURNS) == most


def test_a_slow_server_is_asked_longer_in_the_soak_tier_and_no_longer_than_that() -> None:
    assert sum(asked("oracle.often", 4.0, at) for at in range(exchanges.MORE)) == 480
    assert sum(asked("oracle.batch", 4.0, at) for at in range(exchanges.BATCHES)) == 4


@pytest.mark.parametrize(("answers", "one_in"), [(150, 50), (1000, 334), (1, 1), (2, 1)])
def test_what_so_many_answers_find(answers: int, one_in: int) -> None:
    """1 - (1 - 1 / n) ** answers is 0.95 or more, and for a rarer fault it is not."""
    assert in_how_many(answers) == one_in


def test_prompts_of_one_kind_differ_in_words_alone() -> None:
    def kind(*said: str, **more: Any) -> object:
        return kind_of("/tokenize", {"messages": [{"role": "user", "content": one} for one in said], **more})

    assert kind("Hi") == kind("How are you?")
    different = [
        kind("Hi"),
        kind("Hi", "Ho"),
        kind("<|x|>"),
        kind("สวัสดี"),
        kind("Hi", tools=[{}]),
        kind("a" * 9000),
    ]
    assert len(set(different)) == len(different)
