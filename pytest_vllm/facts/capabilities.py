"""What a vLLM server may be able to do, by name."""

from __future__ import annotations

#: Everything a profile may expect and a check may need. `run/capabilities.py` has one probe for each.
CAPABILITIES = (
    "chat",
    "completions",
    "responses",
    "messages",
    "embeddings",
    "rerank",
    "score",
    "classify",
    "transcription",
    "stream",
    "tools",
    "tools.required",
    "structured-output",
    "reasoning",
    "logprobs",
    "prefix-cache",
    "cached-tokens",
    "metrics",
    "tokenize",
    "openapi",
    "version",
    "auth",
    "lora",
    "vision",
    "sleep",
    "scripted",
)
