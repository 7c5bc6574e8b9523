"""What a model's own chat template or tokenizer refuses, which is not the server's doing.

Templates raise for conversations that their model was not trained on, and so does Mistral's tokenizer, which
renders without a template; vLLM passes their words on with status 400. The words are those of the templates
that models are published with, and of mistral-common's exceptions.
"""

from __future__ import annotations

import re

_KINDS = (
    # templates: turns, roles, tools
    r"roles must alternate",
    r"(?:system|developer|tool) (?:role|message|prompt)s? (?:is |are )?not supported",
    r"only (?:the )?[\w, ]{3,60}roles? (?:is|are) supported",
    r"only supports single tool-calls",
    r"tool call ids should be alphanumeric",
    r"tools in the first user message",
    r"only text and image blocks",
    r"tool role, but there was no previous assistant",
    r"expected non-empty messages",
    r"no user query found in messages",
    # mistral-common, and vLLM's own words about it
    r"unexpected content chunk types",
    r"either content or tool_calls, but not both",
    r"unexpected role '\w+' after role",
    r"expected last role",
    r"conversation must (?:start|have)",
    r"number of function calls and responses",
    r"more tool responses than tool calls",
    r"(?:unexpected|duplicate) tool call id",
    r"not supported for (?:this model|mistral tokenizers)",
)
_WORDS = re.compile("|".join(_KINDS), re.IGNORECASE)
#: A back end that a flag names can't do all that the usual one can; and from 0.33 on vLLM refuses what the
#: one that its engine began with can't do (vllm-project/vllm#43920).
_BACKEND = re.compile(
    r"structured outputs backend does not support|only supports one backend per engine", re.IGNORECASE
)


def refusal(status: int | None, text: str) -> str:
    """Who refused a request that vLLM itself would take, in words; empty where nobody did."""
    if status != 400:
        return ""
    kinds = {
        "the model's chat template or tokenizer": _WORDS,
        "the engine's structured-output backend": _BACKEND,
    }
    for who, words in kinds.items():
        if found := words.search(text):
            return f"{who} refuses it: {text[max(0, found.start() - 60) : found.end() + 60]}"
    return ""
