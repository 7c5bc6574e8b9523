"""Completions: several prompts, echo, token ids, logprobs, streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.unit.sim.client import Answer, Client


def complete(sim: Client, prompt: Any = "The capital of France is", **params: Any) -> Answer:
    """A greedy completion."""
    return sim.post("/v1/completions", **{"prompt": prompt, "temperature": 0, "max_tokens": 8, **params})


def test_a_prompt_is_continued(sim: Client) -> None:
    """A known fact, in the shape of vLLM."""
    body = complete(sim).json
    choice = body["choices"][0]

    assert "Paris" in choice["text"]
    assert (body["object"], choice["index"], body["usage"]["completion_tokens"] <= 8) == (
        "text_completion", 0, True,
    )  # fmt: skip


def test_prompts_make_choices_in_order(sim: Client) -> None:
    """`n` choices for every prompt, indexed through."""
    body = complete(sim, ["One two", "Three four"], n=2, temperature=1, echo=True).json
    texts = [choice["text"] for choice in body["choices"]]

    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2, 3]
    assert [text.startswith("One two") for text in texts] == [True, True, False, False]
    assert all(text.startswith("Three four") for text in texts[2:])


def test_token_ids_are_a_prompt(sim: Client) -> None:
    """The same as the text that they stand for."""
    ids = sim.post("/tokenize", prompt="The capital of France is", add_special_tokens=False).json["tokens"]

    assert complete(sim, ids).json["choices"] == complete(sim).json["choices"]


@pytest.mark.parametrize("stream", [False, True])
def test_echo_with_logprobs_covers_the_prompt(sim: Client, stream: bool) -> None:
    """Its first token has none; offsets point into the text."""
    answer = complete(sim, "One two three", echo=True, logprobs=2, max_tokens=2, stream=stream)
    choices = [event["choices"][0] for event in answer.chunks] if stream else answer.json["choices"]
    tokens, values, offsets = (
        [entry for choice in choices if choice["logprobs"] for entry in choice["logprobs"][key]]
        for key in ("tokens", "token_logprobs", "text_offset")
    )
    text = "".join(choice["text"] for choice in choices)

    assert "".join(tokens) == text
    assert values[0] is None
    assert all(value <= 0 for value in values[1:])
    assert all(text[at:].startswith(token) for at, token in zip(offsets, tokens, strict=True))


def test_a_whole_answer_is_the_stream_put_together(sim: Client) -> None:
    """Text, reason, usage."""
    whole = complete(sim, stop=["."]).json
    stream = complete(sim, stop=["."], stream=True, stream_options={"include_usage": True}).chunks

    assert "".join(c["text"] for e in stream for c in e["choices"]) == whole["choices"][0]["text"]
    assert [c["finish_reason"] for e in stream for c in e["choices"]][-1] == whole["choices"][0][
        "finish_reason"
    ]
    for key in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert stream[-1]["usage"][key] == whole["usage"][key]


def test_usage_can_come_with_every_event(sim: Client) -> None:
    """continuous_usage_stats."""
    options = {"include_usage": True, "continuous_usage_stats": True}
    events = complete(sim, "Tell me", stream=True, stream_options=options, ignore_eos=True).chunks
    counts = [event["usage"]["completion_tokens"] for event in events]

    assert counts == sorted(counts)
    assert counts[-1] == 8


def test_prompt_logprobs_have_one_entry_per_token(sim: Client) -> None:
    """The first is null; the others name the real token."""
    choice = complete(sim, "One two three", prompt_logprobs=1).json["choices"][0]
    entries = choice["prompt_logprobs"]
    count = sim.post("/tokenize", prompt="One two three").json["count"]

    assert len(entries) == count
    assert entries[0] is None
    assert "".join(next(iter(entry.values()))["decoded_token"] for entry in entries[1:]) == "ne two three"


def test_token_ids_can_be_asked_for(sim: Client) -> None:
    """return_token_ids: they spell the text."""
    choice = complete(sim, return_token_ids=True).json["choices"][0]
    text = sim.post("/detokenize", tokens=choice["token_ids"]).json["prompt"]

    assert text.replace("<|im_end|>", "").replace("<|endoftext|>", "") == choice["text"]
    assert choice["prompt_token_ids"]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"prompt": []}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"logprobs": 50}, "logprobs"),
        ({"prompt": [999_999]}, "Token id 999999 is out of vocabulary"),
        ({"stream_options": {"include_usage": True}}, "stream"),
    ],
)
def test_a_wrong_wish_is_refused(sim: Client, params: dict[str, Any], words: str) -> None:
    """400 that names it."""
    answer = complete(sim, **params)

    assert answer.status == 400
    assert words in answer.body.decode()
