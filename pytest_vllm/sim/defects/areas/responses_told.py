"""Defects of what a response tells of its request and of itself."""

from __future__ import annotations

from typing import Any

from pytest_vllm.sim.defects.make import spoil, spoil_events
from pytest_vllm.sim.defects.scope import RESPONSES

HERE = (RESPONSES,)


def _first_only(tools: Any) -> Any:
    return [{**tool, "name": "tool"} for tool in tools] if isinstance(tools, list) else tools


spoil(
    "responses.default-settings",
    "Responses tell the default temperature, whatever was asked for.",
    HERE,
    "temperature",
    0.7,
    catches=["responses.told.settings"],
)
spoil(
    "responses.tools-renamed",
    "The tools that a response tells are not those that were offered.",
    HERE,
    "tools",
    _first_only,
    catches=["responses.told.tools"],
)
spoil_events(
    "responses.end-shapeless",
    "The response at the end of a stream counts its tokens in text.",
    HERE,
    "response.usage.output_tokens_details.reasoning_tokens",
    str,
    catches=["responses.stream.schema"],
)
spoil_events(
    "responses.end-forgets",
    "The response at the end of a stream forgets how it was sampled.",
    HERE,
    "response.top_p",
    0.5,
    catches=["responses.stream.same-settings"],
)
spoil_events(
    "responses.end-of-user",
    "The message at the end of a stream is the user's.",
    HERE,
    "response.output.*.role",
    "user",
    catches=["responses.stream.same-items"],
)
spoil_events(
    "responses.part-empty",
    "Parts are closed without their text.",
    HERE,
    "part.text",
    "",
    catches=["responses.stream.parts-close"],
)
spoil_events(
    "responses.call-anonymous",
    "The event that completes a call names no function.",
    HERE,
    "name",
    "",
    catches=["responses.stream.call-named"],
)
spoil_events(
    "responses.items-close-otherwise",
    "Items are closed with another author than the response at the end of the stream gives them.",
    HERE,
    "item.role",
    "user",
    catches=["responses.stream.items-close"],
)
spoil(
    "responses.listed-otherwise",
    "Tokens of a response are listed with no log probability of their own.",
    HERE,
    "output.*.content.*.logprobs.*.logprob",
    None,
    area="oracle",
    catches=["oracle.listed.value"],
)
spoil(
    "responses.lists-another-token",
    "What a response lists for its tokens is of another text.",
    HERE,
    "output.*.content.*.logprobs.*.token",
    "heron",
    area="oracle",
    catches=["oracle.listed.joined"],
)
