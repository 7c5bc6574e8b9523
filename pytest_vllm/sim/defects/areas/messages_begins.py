"""Defects of what a Messages stream begins with."""

from __future__ import annotations

from pytest_vllm.sim.defects.make import spoil_events
from pytest_vllm.sim.defects.scope import MESSAGES

HERE = (MESSAGES,)

spoil_events(
    "messages.begins-without-content",
    "A stream begins with a message that has no list for its content.",
    HERE,
    "message.content",
    None,
    catches=["messages.stream.begins-whole"],
)
spoil_events(
    "messages.begins-uncounted",
    "A stream begins with a message whose output tokens are null.",
    HERE,
    "message.usage.output_tokens",
    None,
    catches=["messages.stream.usage-begins"],
)
spoil_events(
    "messages.blocks-begin-bare",
    "A text block begins without the text that its deltas are added to.",
    HERE,
    "content_block.text",
    catches=["messages.stream.blocks-begin"],
)
spoil_events(
    "messages.thinks-without-words",
    "Streamed reasoning comes without its words.",
    HERE,
    "delta.thinking",
    "",
    catches=["messages.stream.thinking-said"],
)
