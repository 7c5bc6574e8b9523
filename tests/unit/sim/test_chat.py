"""Chat completions: shapes, limits, stopping, streams, choices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.sim.client import Client

FRANCE = "What is the capital of France?"
KEYS = {
    "0.10.0": "role content refusal annotations audio function_call tool_calls reasoning_content",
    "0.12.0": "role content refusal annotations audio function_call tool_calls reasoning reasoning_content",
    "0.20.0": "role content refusal annotations audio function_call tool_calls reasoning",
    "0.32.0": "role content refusal annotations audio function_call reasoning",
}


def test_a_known_fact_is_answered(sim: Client) -> None:
    """The persona knows capitals; counts and reasons fit."""
    body = sim.chat(FRANCE).json
    choice, usage = body["choices"][0], body["usage"]

    assert choice["message"]["content"] == "The capital of France is Paris."
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", None)
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


@pytest.mark.parametrize("version", KEYS)
def test_the_message_has_the_keys_of_its_version(simulated: Callable[..., Client], version: str) -> None:
    """In the order in which vLLM writes them."""
    message = simulated("m", "--sim-version", version).chat(FRANCE).json["choices"][0]["message"]

    assert list(message) == KEYS[version].split()


def test_stream_and_whole_answer_say_the_same(sim: Client) -> None:
    """Text, reason and usage agree; the stream is framed as vLLM frames it."""
    whole = sim.chat(FRANCE, max_tokens=9).json
    stream = sim.chat(FRANCE, max_tokens=9, stream=True, stream_options={"include_usage": True})
    chunks = stream.chunks

    assert stream.text == whole["choices"][0]["message"]["content"]
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]] == [None] * 9 + ["length"]
    assert (chunks[-1]["choices"], stream.events[-1]) == ([], "[DONE]")
    assert chunks[-1]["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"] == 9


def test_a_stop_string_ends_the_text_and_is_held_back(sim: Client) -> None:
    """Nothing of the stop string reaches the stream, unless it is asked for."""
    stream = sim.chat(FRANCE, stop=["France"], stream=True)
    kept = sim.said(FRANCE, stop=["France"], include_stop_str_in_output=True)
    last = stream.chunks[-1]["choices"][0]

    assert stream.text == "The capital of "
    assert (last["finish_reason"], last["stop_reason"]) == ("stop", "France")
    assert kept == "The capital of France"


def test_a_stop_token_is_named_and_counted(sim: Client) -> None:
    """The token ends the answer, counts, and does not show."""
    token = sim.post("/tokenize", prompt=" is").json["tokens"][0]
    body = sim.chat(FRANCE, stop_token_ids=[token], return_token_ids=True).json
    choice = body["choices"][0]

    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", token)
    assert choice["token_ids"][-1] == token
    assert choice["message"]["content"] == "The capital of France"
    assert body["usage"]["completion_tokens"] == len(choice["token_ids"])


def test_min_tokens_and_ignore_eos_go_on_after_the_end(sim: Client) -> None:
    """The answer is prolonged as far as was asked."""
    least = sim.chat("Hi", min_tokens=40, max_tokens=60).json
    most = sim.chat("Hi", ignore_eos=True, max_tokens=50).json

    assert 40 <= least["usage"]["completion_tokens"] <= 60
    assert (most["usage"]["completion_tokens"], most["choices"][0]["finish_reason"]) == (50, "length")


def test_characters_that_span_tokens_arrive_whole(sim: Client) -> None:
    """Emoji and ideographs are several tokens and one piece of text each."""
    wanted = "日本語 🎉 é"
    stream = sim.chat(f"Repeat this exactly: {wanted}", stream=True)
    pieces = [chunk["choices"][0]["delta"].get("content", "") for chunk in stream.chunks]

    assert stream.text == wanted
    assert "\ufffd" not in stream.text
    assert "" in pieces[1:-1]


def test_choices_differ_and_a_seed_repeats_them(sim: Client) -> None:
    """Sampling gives variety; a seed gives the same again."""
    body = sim.chat(FRANCE, n=3, temperature=1).json
    texts = [choice["message"]["content"] for choice in body["choices"]]
    seeded = [sim.said(FRANCE, temperature=1, seed=7) for _ in range(2)]

    assert len(set(texts)) == 3
    assert seeded[0] == seeded[1]


def test_greedy_wants_one_choice(sim: Client) -> None:
    """As vLLM: n above 1 needs a temperature."""
    answer = sim.chat(FRANCE, n=2)

    assert (answer.status, answer.json["error"]["code"]) == (400, 400)


def test_logprobs_name_the_chosen_token_first(sim: Client) -> None:
    """Joined tokens are the text; chances are at most zero and fall."""
    choice = sim.chat(FRANCE, logprobs=True, top_logprobs=3).json["choices"][0]
    entries = choice["logprobs"]["content"]

    assert "".join(entry["token"] for entry in entries[:-1]) == choice["message"]["content"]
    for entry in entries:
        chances = [top["logprob"] for top in entry["top_logprobs"]]
        assert entry["top_logprobs"][0]["token"] == entry["token"]
        assert chances == sorted(chances, reverse=True)
        assert entry["logprob"] <= 0


def test_a_forced_token_fills_the_answer(sim: Client) -> None:
    """A bias of 100 leaves nothing else; a ban makes the token disappear."""
    token = sim.post("/tokenize", prompt="Paris").json["tokens"][0]
    forced = sim.chat(FRANCE, logit_bias={str(token): 100}, max_tokens=4, return_token_ids=True).json
    plain = sim.chat(FRANCE, return_token_ids=True).json["choices"][0]["token_ids"]
    banned = sim.chat(FRANCE, logit_bias={str(plain[0]): -100}, return_token_ids=True).json

    assert forced["choices"][0]["token_ids"] == [token] * 4
    assert plain[0] not in banned["choices"][0]["token_ids"]


@pytest.mark.parametrize(
    ("params", "param"),
    [
        ({"temperature": -1}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1 << 31}, "max_tokens"),
        ({"n": 0}, None),
        ({"stop": [""]}, None),
        ({"tools": []}, "tools"),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 1000}, "logprobs"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"structured_outputs": {}}, None),
        ({"cache_salt": "x" * 129}, "cache_salt"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
    ],
    ids=str,
)
def test_wishes_beyond_the_rules_are_refused(sim: Client, params: dict[str, Any], param: str | None) -> None:
    """With vLLM's own error object, naming the parameter where vLLM does."""
    answer = sim.chat("Hi", **params)
    error = answer.json["error"]

    assert answer.status == error["code"] == 400
    assert (error["type"], error["param"]) == ("BadRequestError", param)


@pytest.mark.parametrize(
    ("params", "param"),
    [
        ({"n": 2.5}, "body.n"),
        ({"stream": "yes!"}, "body.stream"),
        ({"messages": "hi"}, "body.messages"),
        ({"messages": [{"content": "x"}]}, "body.messages.0.ChatCompletionDeveloperMessageParam.role"),
        ({"stop": [str(number) for number in range(9)]}, "body.stop"),
        ({"seed": 1 << 70}, "body.seed"),
        ({"tools": [{"type": "function", "function": {}}]}, "body.tools.0.function.name"),
    ],
    ids=str,
)
def test_wrong_types_are_refused_as_pydantic_does(sim: Client, params: dict[str, Any], param: str) -> None:
    """Type "Bad Request", param the path into the body."""
    error = sim.chat("Hi", **params).json["error"]

    assert (error["code"], error["type"], error["param"]) == (400, "Bad Request", param)


def test_numbers_in_text_are_taken(sim: Client) -> None:
    """Pydantic's lax mode: "2" is 2."""
    assert len(sim.chat("Hi", n="2", temperature=1).json["choices"]) == 2


def test_a_prompt_over_the_context_names_the_real_numbers(sim: Client) -> None:
    """Both by tokens and by characters."""
    by_tokens = sim.chat("word " * 5000).json["error"]
    by_characters = sim.chat("x" * 1_000_000).json["error"]

    assert by_tokens["param"] == "input_tokens"
    assert "4096 tokens" in by_tokens["message"]
    assert "at least 4097 input tokens" in by_tokens["message"]
    assert by_characters["param"] == "input_text"


def test_a_stream_is_refused_before_or_as_an_event(sim: Client) -> None:
    """Bad sampling is a 400; what only the engine sees is an event of a 200."""
    early = sim.chat("Hi", stream=True, temperature=-1)
    late = sim.chat("Hi", stream=True, structured_outputs={"regex": "("})

    assert early.status == 400
    assert (late.status, late.events[0]["error"]["code"], late.events[-1]) == (200, 400, "[DONE]")


def test_old_versions_have_a_flat_error(simulated: Callable[..., Client]) -> None:
    """Until 0.10.0; wrapped from 0.10.1."""
    old = simulated("m", "--sim-version", "0.10.0").chat("Hi", model="nope").json
    new = simulated("m", "--sim-version", "0.10.1").chat("Hi", model="nope").json

    assert (old["object"], old["type"]) == ("error", "NotFoundError")
    assert new["error"]["type"] == "NotFoundError"


def test_the_same_question_twice_is_answered_with_the_same_bytes(simulated: Callable[..., Client]) -> None:
    """Apart from id and time; so do two simulators with the same seed."""
    answers = [
        simulated("m", "--sim-seed", "3", *extra).chat("Hi", temperature=1).json
        for extra in ((), ("--port", "0"))
    ]
    texts = [answer["choices"][0]["message"]["content"] for answer in answers]

    assert texts[0] == texts[1]
    assert answers[0]["id"] == answers[1]["id"]
