"""How the suites of these interfaces read answers, vectors and events."""

from __future__ import annotations

import base64
import json
import math
import struct
from typing import Any

import pytest

from pytest_vllm import Recording, Request
from suites.embeddings import vectors
from suites.lora.test_adapters import distance
from suites.messages import blocks
from suites.responses import items


def answer(body: Any) -> Recording:
    return Recording("x", Request("POST", "/"), status=200, chunks=((0.1, json.dumps(body).encode()),))


def stream(*events: dict[str, Any]) -> Recording:
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    request = Request("POST", "/", json={"stream": True})
    return Recording("x", request, status=200, chunks=((0.1, text.encode()),))


def delta(index: int, text: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": index, "delta": text}


def test_pieces_of_an_item_are_joined_and_others_left_out() -> None:
    recording = stream(delta(0, "He"), delta(1, "no"), delta(0, "ron"))

    assert items.joined(recording, 0) == "Heron"


def test_an_event_that_is_no_object_is_no_event() -> None:
    recording = Recording("x", Request("POST", "/"), status=200, chunks=((0.1, b"data: {oops\n\n"),))

    assert items.events(recording) == []


def test_the_final_response_is_empty_without_an_ending_event() -> None:
    assert items.final(stream(delta(0, "He"))) == {}


def test_words_hold_thoughts_and_spoken_text_does_not() -> None:
    thought = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "Hm."}]}
    message = {"type": "message", "content": [{"type": "output_text", "text": "Heron"}]}

    assert (items.words({"output": [thought, message]}), items.spoken({"output": [thought, message]})) == (
        "Hm.Heron",
        "Heron",
    )


def test_tokens_of_a_prompt_include_those_from_the_cache() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 32, "cache_creation_input_tokens": None}

    assert blocks.prompt_tokens(usage) == 37


@pytest.mark.parametrize("usage", [None, "many", {}, {"input_tokens": None}])
def test_tokens_that_are_not_told_are_none(usage: Any) -> None:
    assert blocks.prompt_tokens(usage) == 0


def test_a_vector_in_base64_is_read_as_little_endian_floats() -> None:
    packed = base64.b64encode(struct.pack("<2f", 0.5, -2.0)).decode()

    assert vectors.vector({"embedding": packed}) == (0.5, -2.0)


def test_what_is_no_vector_is_empty() -> None:
    wrong: list[Any] = [None, [], ["a"], {}]

    assert [vectors.vector({"embedding": one}) for one in wrong] == [()] * 4


def test_vectors_of_unequal_size_are_not_alike() -> None:
    assert vectors.likeness((1.0, 0.0), (1.0,)) == 0.0


def test_likeness_is_the_cosine() -> None:
    assert math.isclose(vectors.likeness((3.0, 0.0), (1.0, 1.0)), math.sqrt(0.5))


def chat(text: str, *logprobs: float) -> Recording:
    told = [{"token": "x", "logprob": value} for value in logprobs]
    choice = {"message": {"content": text}, "logprobs": {"content": told}}
    return answer({"choices": [choice]})


def test_answers_are_as_far_apart_as_their_log_probabilities() -> None:
    assert math.isclose(distance(chat("a", -0.1, -0.5), chat("a", -0.1, -0.2)), 0.3)


def test_other_words_are_far_apart() -> None:
    assert distance(chat("a"), chat("b")) == 1.0
