"""Requests of the canary suite: does the engine compute what it should, for each request its own.

Most of them need no clever model: they compare the server with itself, alone and in a batch, forwards and
read again.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from pytest_vllm import Case, Recording, Request, Server, cases, exchange

CODES = (
    "QX7-4182", "LM2-9037", "ZB9-5561", "RV4-7720", "KD8-1394", "WP3-6645",
    "HT6-2818", "NG5-8093", "FJ1-3476", "CY0-9152", "SV7-2260", "UE4-7731",
)  # fmt: skip
SENTENCES = (
    "The dog ran after the ball and came back with it.",
    "She opened the window because the room was warm.",
    "We bought bread and milk at the shop on the corner.",
    "It was late, so they took the last train home.",
)
COLOURS = "red green blue yellow black white brown orange purple grey"
OPENING = "The sea is wide and deep, and"
LONGEST = 2400

canary_code = cases("canary_code", [{"id": code.lower(), "code": code} for code in CODES])
canary_case = cases("canary_case", [{"id": code.lower(), "code": code} for code in CODES[:6]])
canary_text = cases(
    "canary_text", [{"id": f"sentence-{n}", "text": text} for n, text in enumerate(SENTENCES, 1)]
)
canary_lane = cases("canary_lane", [{"id": f"colour-{n}", "at": n} for n in range(6)])
QUESTIONS = [
    {"id": "france", "ask": "What is the capital of France? Answer in one sentence.", "answer": "paris"},
    {"id": "week", "ask": "How many days are there in a week?", "answer": "seven|7"},
    {"id": "hot", "ask": "What is the opposite of hot?", "answer": "cold"},
    {"id": "sky", "ask": "What color is the sky on a clear day?", "answer": "blue"},
    {"id": "sum", "ask": "What is 2 + 2?", "answer": "4|four"},
    {"id": "spider", "ask": "How many legs does a spider have?", "answer": "8|eight"},
]
canary_ask = cases("canary_ask", QUESTIONS)


@exchange("canary.needle")
def canary_needle(server: Server, canary_code: Case) -> Request:
    """A code of its own that is to be repeated, beside others with theirs."""
    return server.chat(f'Repeat this code and nothing else: "{canary_code["code"]}"', **_short(server, 24))


@exchange("canary.scored")
def canary_scored(server: Server, canary_case: Case) -> Request:
    """A prompt with a code of its own, scored beside others."""
    return _scored(server, _locker(canary_case))


@exchange("canary.scored-alone", alone=True)
def canary_scored_alone(server: Server, canary_case: Case) -> Request:
    """The same prompt with the server to itself."""
    return _scored(server, _locker(canary_case))


@exchange("canary.colours")
def canary_colours(server: Server) -> Request:
    """Words, as tokens."""
    return server.post("/tokenize", {"prompt": COLOURS, "add_special_tokens": False})


@exchange("canary.masked")
def canary_masked(server: Server, canary_lane: Case, canary_colours: Recording) -> Request:
    """One of several requests at once, each allowed one token of its own."""
    ids = list(dict.fromkeys(canary_colours.ok["tokens"]))
    masked: dict[str, Any] = {"allowed_token_ids": [ids[canary_lane["at"] % len(ids)]], "logprobs": 0}
    return server.completion("Say", max_tokens=8, return_tokens_as_token_ids=True, **masked)


@exchange("canary.long-stream")
def canary_long_stream(server: Server, canary_colours: Recording) -> Request:
    """A stream behind more than half the context, as far as that is affordable, beside short ones."""
    ids = canary_colours.ok["tokens"]
    length = min(int(0.6 * (server.max_model_len or LONGEST)), LONGEST)
    every = {"include_usage": True, "continuous_usage_stats": True}
    streams: dict[str, Any] = {"stream": True, "stream_options": every} if server.can("stream") else {}
    return server.completion(
        (ids * (length // len(ids) + 1))[:length], max_tokens=2, ignore_eos=True, **streams
    )


@exchange("canary.story")
def canary_story(server: Server) -> Request:
    """A paragraph of plain English."""
    asked = "Write a short paragraph in plain English about a boat on the sea."
    return server.chat(asked, max_tokens=64, **_calm(server))


@exchange("canary.hot")
def canary_hot(server: Server) -> Request:
    """A text at a high temperature; no default of the model's own narrows it."""
    hot: dict[str, Any] = {"temperature": 2.0, "top_p": 1.0, "top_k": -1}
    return server.completion(OPENING, max_tokens=24, ignore_eos=True, logprobs=1, **hot)


@exchange("canary.greedy")
def canary_greedy(server: Server) -> Request:
    """A greedy continuation with its token ids."""
    return server.completion(OPENING, max_tokens=32, ignore_eos=True, logprobs=1, return_token_ids=True)


@exchange("canary.read-again")
def canary_read_again(server: Server, canary_greedy: Recording) -> Request:
    """The same tokens, read as a prompt: nothing drafts, nothing is sampled, no step is replayed."""
    choice = canary_greedy.ok["choices"][0]
    ids = (choice.get("prompt_token_ids") or []) + (choice.get("token_ids") or [])
    return server.completion(ids or OPENING, max_tokens=1, logprobs=1, echo=True)


@exchange("canary.sentence")
def canary_sentence(server: Server, canary_text: Case) -> Request:
    """A plain sentence, scored."""
    return _scored(server, canary_text["text"])


@exchange("canary.backwards")
def canary_backwards(server: Server, canary_text: Case) -> Request:
    """Its words from the last to the first."""
    return _scored(server, " ".join(reversed(canary_text["text"].rstrip(".").split())) + ".")


@exchange("canary.question")
def canary_question(server: Server, canary_ask: Case) -> Request:
    """A question that every child can answer."""
    return server.chat(canary_ask["ask"], **_short(server, 40))


@exchange("canary.cold")
def canary_cold(server: Server) -> Request:
    """A prompt that nobody has ever sent."""
    return server.completion(_unseen(), max_tokens=1)


@exchange("canary.warm", metrics=True)
def canary_warm(server: Server, canary_cold: Recording) -> Request:
    """The same prompt again."""
    return server.completion(canary_cold.request.json["prompt"], max_tokens=1)


@exchange("canary.cold-response")
def canary_cold_response(server: Server) -> Request:
    """A prompt that nobody has ever sent, over Responses."""
    body = {"input": _unseen(), "max_output_tokens": 1, "temperature": 0}
    return server.post("/v1/responses", body, expect=None)


@exchange("canary.warm-response", metrics=True)
def canary_warm_response(server: Server, canary_cold_response: Recording) -> Request:
    """The same prompt over Responses again."""
    return server.post("/v1/responses", canary_cold_response.request.json, expect=None)


@exchange("canary.drafted", metrics=True)
def canary_drafted(server: Server) -> Request:
    """A text that repeats itself, easy to draft."""
    prompt = "one two three four five one two three four five one two three four five one two three four"
    return server.completion(prompt, max_tokens=64, ignore_eos=True)


def _unseen() -> str:
    """About 700 tokens, new in every run: a server that runs for days remembers the last run's."""
    mark = uuid4().hex
    return " ".join(f"{mark[:8]} item {number} of the list {mark[-4:]}{number}" for number in range(40))


def _locker(case: Case) -> str:
    return f"The code of my locker is {case['code']}. Please remember that the code of my locker is"


def _scored(server: Server, prompt: str) -> Request:
    return server.completion(prompt, max_tokens=1, logprobs=0, echo=True)


def _short(server: Server, plain: int) -> dict[str, Any]:
    """Room for a short answer; some models think, however much they are asked not to."""
    return {"max_tokens": 600 if server.can("reasoning") else plain, **_calm(server)}


def _calm(server: Server) -> dict[str, Any]:
    return {"chat_template_kwargs": {"enable_thinking": False}} if server.can("reasoning") else {}
