"""Whose words a refusal is in: the template's, the tokenizer's, or vLLM's own."""

from __future__ import annotations

import json

import pytest

from pytest_vllm.wire.template import refusal

THEIRS = [
    "Conversation roles must alternate user/assistant/user/assistant/... None",
    "After the optional system message, conversation roles must alternate user and assistant",
    "System role not supported",
    "Only user, assistant and tool roles are supported!",
    "This model only supports single tool-calls at once!",
    "Tool call IDs should be alphanumeric strings with length 9!",
    "Unexpected content chunk types in assistant message: ['ThinkChunk']",
    "Assistant message must have either content or tool_calls, but not both.",
    "Unexpected role 'system' after role 'assistant'",
    "chat_template is not supported for Mistral tokenizers. (parameter=chat_template)",
    "reasoning_effort='high' is not supported for this model",
]
OURS = [
    "'input_text' is not a valid ChunkTypes",
    "temperature must be non-negative, got -1.0. (parameter=temperature, value=-1.0)",
    "1 validation error:\n  {'type': 'literal_error', 'loc': 'body.messages.0.role'}",
    "The model `x` does not exist.",
    "Only 'application/json' is allowed",
    "suffix is not currently supported",
    "list index out of range",
]


@pytest.mark.parametrize("words", THEIRS)
def test_a_template_says_so(words: str) -> None:
    """The words of templates and of Mistral's tokenizer, as they stand in vLLM's error."""
    assert refusal(400, json.dumps({"error": {"message": words}}))


@pytest.mark.parametrize("words", THEIRS)
def test_only_with_400(words: str) -> None:
    """A server that fails says nothing of its template."""
    assert not refusal(500, words)
    assert not refusal(200, words)


@pytest.mark.parametrize(
    "words",
    [
        "Structured output processing only supports one backend per engine. The engine is already using",
        "Outlines structured outputs backend does not support grammar specifications",
    ],
)
def test_a_backend_says_so(words: str) -> None:
    """One that can do less, or an engine of vLLM 0.33 that has begun with another; it is named."""
    assert refusal(400, words).startswith("the engine's structured-output backend refuses it")


@pytest.mark.parametrize("words", OURS)
def test_vllm_says_so(words: str) -> None:
    """What vLLM itself refuses stays a finding."""
    assert not refusal(400, json.dumps({"error": {"message": words}}))
