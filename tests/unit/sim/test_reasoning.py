"""Thoughts: apart from the answer, under the names of the version, whole and streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.sim.client import Client

ASK = "What is the capital of France?"
QWEN, R1 = ("Qwen/Qwen3-8B", "qwen3"), ("deepseek-ai/DeepSeek-R1", "deepseek_r1")
NAMES = {
    "0.10.0": {"reasoning_content"},
    "0.11.0": {"reasoning_content"},
    "0.12.0": {"reasoning", "reasoning_content"},
    "0.15.0": {"reasoning", "reasoning_content"},
    "0.16.0": {"reasoning"},
    "0.32.0": {"reasoning"},
}


def thinker(simulated: Callable[..., Client], model: tuple[str, str], version: str = "0.32.0") -> Client:
    """A simulator of a thinking model with its parser."""
    name, parser = model
    more = ("--served-model-name", "thinker", "--max-model-len", "4096", "--sim-version", version)
    return simulated(name, "--reasoning-parser", parser, *more)


def streamed(chunks: list[Any], key: str) -> str:
    """The text of one key of the deltas."""
    return "".join(
        choice["delta"].get(key) or "" for chunk in chunks for choice in chunk["choices"] if choice["delta"]
    )


@pytest.mark.parametrize("version", NAMES)
def test_thoughts_have_the_names_of_the_version(simulated: Callable[..., Client], version: str) -> None:
    """In messages and in deltas, and the same text in both."""
    sim = thinker(simulated, QWEN, version)
    message = sim.chat(ASK).json["choices"][0]["message"]
    chunks = sim.chat(ASK, stream=True).chunks
    keys = {key for chunk in chunks for choice in chunk["choices"] for key in choice["delta"]}

    assert {key for key in message if key.startswith("reasoning")} == NAMES[version]
    assert {key for key in keys if key.startswith("reasoning")} == NAMES[version]
    for name in NAMES[version]:
        assert message[name]
        assert streamed(chunks, name) == message[name]


@pytest.mark.parametrize("model", [QWEN, R1])
def test_no_marker_is_left_and_the_answer_is_whole(
    simulated: Callable[..., Client], model: tuple[str, str]
) -> None:
    """Thoughts before the answer; neither holds a tag."""
    sim = thinker(simulated, model)
    message = sim.chat(ASK).json["choices"][0]["message"]
    chunks = sim.chat(ASK, stream=True).chunks

    assert "Paris" in message["content"]
    assert "think>" not in message["content"] + message["reasoning"]
    assert streamed(chunks, "content").strip() == message["content"].strip()
    assert streamed(chunks, "reasoning").strip() == message["reasoning"].strip()


def test_thinking_can_be_turned_off(simulated: Callable[..., Client]) -> None:
    """By the template's switch."""
    sim = thinker(simulated, QWEN)
    message = sim.chat(ASK, chat_template_kwargs={"enable_thinking": False}).json["choices"][0]["message"]

    assert not message["reasoning"]
    assert message["content"] == "The capital of France is Paris."


def test_thoughts_that_are_cut_leave_no_answer(simulated: Callable[..., Client]) -> None:
    """All tokens went into thinking."""
    choice = thinker(simulated, QWEN).chat(ASK, max_tokens=4).json["choices"][0]

    assert choice["finish_reason"] == "length"
    assert choice["message"]["reasoning"]
    assert choice["message"]["content"] is None


def test_thoughts_stay_in_the_text_without_a_parser(simulated: Callable[..., Client]) -> None:
    """As the model writes them."""
    content = simulated("Qwen/Qwen3-8B", "--max-model-len", "4096").said(ASK)

    assert "<think>" in content
    assert "</think>" in content


@pytest.mark.parametrize("parser", [(), ("--reasoning-parser", "qwen3")])
def test_a_constraint_holds_from_the_first_token_or_after_the_thoughts(
    simulated: Callable[..., Client], parser: tuple[str, ...]
) -> None:
    """Without a parser nobody knows when the thoughts are over, so there are none."""
    sim = simulated("Qwen/Qwen3-8B", "--max-model-len", "4096", *parser)
    message = sim.chat(ASK, structured_outputs={"choice": ["Paris", "Rome"]}).json["choices"][0]["message"]

    assert message["content"].strip() == "Paris"
    assert bool(message["reasoning"]) == bool(parser)


def test_thoughts_can_be_left_out(simulated: Callable[..., Client]) -> None:
    """include_reasoning false."""
    message = thinker(simulated, QWEN).chat(ASK, include_reasoning=False).json["choices"][0]["message"]

    assert not message["reasoning"]
    assert "Paris" in message["content"]


@pytest.mark.parametrize("parser", [(), ("--reasoning-parser", "qwen3")])
def test_hot_thinkers_begin_differently(simulated: Callable[..., Client], parser: tuple[str, ...]) -> None:
    """At a temperature of 2 few of sixteen choices begin alike, thoughts in the text or apart."""
    sim = simulated("Qwen/Qwen3-8B", "--served-model-name", "thinker", "--max-model-len", "4096", *parser)
    choices = sim.chat("Tell me a story.", n=16, max_tokens=6, temperature=2.0).json["choices"]
    texts = {
        f"{one['message'].get('reasoning') or ''}{one['message'].get('content') or ''}" for one in choices
    }

    assert len(texts) > 12


def test_a_rendered_question_is_thought_about_over_completions_too(simulated: Callable[..., Client]) -> None:
    """The model is the same on both routes; with the switch off the template closes the thought at once."""
    sim = thinker(simulated, QWEN)
    messages = [{"role": "user", "content": ASK}]
    for more, thinks in ({}, True), ({"chat_template_kwargs": {"enable_thinking": False}}, False):
        prompt = sim.post("/tokenize", messages=messages, **more).json["tokens"]
        answer = sim.post("/v1/completions", prompt=prompt, max_tokens=60, temperature=0)
        text = answer.json["choices"][0]["text"]

        assert text.startswith("<think>") is thinks, text
