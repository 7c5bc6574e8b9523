"""A scripted simulator says what it is told, as the real engine does, and nothing else changes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.sim.client import CHAT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.sim.client import Answer, Client

PROCESSOR = ("--logits-processors", "any_module:ScriptedProcessor")
FORM = {"type": "json_schema", "json_schema": {"name": "f", "schema": {"type": "object"}}}
RIVER = "river seven yellow paper"


@pytest.fixture
def scripted(simulated: Callable[..., Client]) -> Client:
    return simulated("sim-model", "--max-model-len", "4096", *PROCESSOR)


def say(client: Client, script: Any, **more: Any) -> Answer:
    messages = [{"role": "user", "content": "Hi"}]
    return client.ask("POST", CHAT, {"messages": messages, "vllm_xargs": {"script": script}, **more})


def test_the_script_is_the_answer(scripted: Client) -> None:
    body = say(scripted, RIVER).json

    assert body["choices"][0]["message"]["content"] == RIVER
    assert body["choices"][0]["finish_reason"] == "stop"


def test_a_list_sets_where_tokens_end(scripted: Client) -> None:
    counts = [say(scripted, script).json["usage"]["completion_tokens"] for script in (RIVER, list(RIVER))]

    assert counts[1] == len(RIVER) + 1
    assert counts[0] < counts[1]


def test_a_limit_cuts_it_at_a_token(scripted: Client) -> None:
    choice = say(scripted, list(RIVER), max_tokens=7).json["choices"][0]

    assert (choice["message"]["content"], choice["finish_reason"]) == (RIVER[:7], "length")


def test_every_choice_says_it(scripted: Client) -> None:
    body = say(scripted, RIVER, n=2, temperature=1).json

    assert [choice["message"]["content"] for choice in body["choices"]] == [RIVER, RIVER]


@pytest.mark.parametrize("script", [5, ["a", 5]])
def test_what_is_no_script_is_refused(scripted: Client, script: object) -> None:
    assert say(scripted, script).status == 400


def test_a_script_that_the_schema_forbids_is_an_error(scripted: Client) -> None:
    assert say(scripted, RIVER, response_format=FORM).status == 500
    assert say(scripted, "{}", response_format=FORM).status == 200


def test_what_a_grammar_forbade_is_told(scripted: Client) -> None:
    def told() -> str:
        body = {"prompt": "Which?", "max_tokens": 500, "vllm_xargs": {"forbidden": 1}}
        return str(scripted.ask("POST", "/v1/completions", body).json["choices"][0]["text"])

    before = told()
    say(scripted, "{", response_format=FORM)
    say(scripted, "{}", response_format=FORM)
    known, another = (f"{hashlib.sha256(text.encode()).hexdigest()[:12]}:0" for text in ("{", "{}"))

    assert known not in before
    assert known in told().split()
    assert another not in told()


def test_requests_without_a_script_are_answered_as_ever(scripted: Client, sim: Client) -> None:
    asked = [{"role": "user", "content": "What is the capital of France?"}]
    body = {"messages": asked, "temperature": 0}
    texts = [
        client.ask("POST", CHAT, body).json["choices"][0]["message"]["content"] for client in (scripted, sim)
    ]

    assert texts[0] == texts[1]


def test_without_the_processor_there_are_no_scripts(sim: Client) -> None:
    assert RIVER not in say(sim, RIVER).json["choices"][0]["message"]["content"]
