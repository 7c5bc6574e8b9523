"""How this suite reads an answer: reasoning and text apart, whole or streamed, under whichever key."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_vllm import need

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm import Recording, Recordings, Server

KEYS = ("reasoning", "reasoning_content")

#: What wraps reasoning, by the families of vLLM's reasoning parsers; no client is to see it.
TAGS = (
    "<think>", "</think>", "<mm:think>", "</mm:think>", "[THINK]", "[/THINK]", "<seed:think>",
    "</seed:think>", "<|channel|>", "<|channel>", "<channel|>", "<thought>", "</thought>",
    "<|inner_prefix|>", "<|inner_suffix|>", "<longcat_think>", "</longcat_think>", "<response>",
    "</response>", "<answer>", "</answer>", "<|START_THINKING|>", "<|END_THINKING|>",
)  # fmt: skip
_CONTROL = re.compile("<[|\uff5c][^<>|\uff5c\\s]{1,40}[|\uff5c]>")


@dataclass(frozen=True)
class Said:
    """What one choice says.

    Args:
        key: of the recording.
        thoughts: the reasoning.
        content: the text.
        finish: the finish reason; empty when none came.
        keys: the keys under which reasoning came.
        called: whether there are tool calls.
        usage: the usage of the answer, empty when it came without.
    """

    key: str
    thoughts: str
    content: str
    finish: str
    keys: frozenset[str]
    called: bool
    usage: dict[str, Any]

    @property
    def ended(self) -> bool:
        """Whether the model ended it, rather than a limit."""
        return self.finish in ("stop", "tool_calls")

    @property
    def counted(self) -> int | None:
        """The reasoning tokens that the usage reports."""
        count = (self.usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
        return count if isinstance(count, int) else None


def said(recording: Recording, choice: int = 0) -> Said:
    """One choice of an answer. Raises Undecided when the request was not answered with 200."""
    if recording.request.streams:
        parts = list(deltas(recording, choice))
        chunks = [chunk for chunk in recording.deltas if isinstance(chunk, dict)]
        finishes = [one["finish_reason"] for one in pieces(recording, choice) if one.get("finish_reason")]
        usages = [chunk["usage"] for chunk in chunks if chunk.get("usage")]
    else:
        mine = [one for one in recording.ok.get("choices") or [] if one.get("index") == choice]
        parts = [one.get("message") or {} for one in mine]
        finishes = [one["finish_reason"] for one in mine if one.get("finish_reason")]
        usages = [recording.ok.get("usage") or {}]
    return Said(
        recording.key,
        "".join(map(thought, parts)),
        "".join(part.get("content") or "" for part in parts),
        finishes[-1] if finishes else "",
        frozenset(key for part in parts for key in KEYS if part.get(key)),
        any(part.get("tool_calls") for part in parts),
        usages[-1] if usages else {},
    )


def thought(part: dict[str, Any]) -> str:
    """The reasoning of a message or delta."""
    return str(part.get("reasoning") or part.get("reasoning_content") or "")


def pieces(recording: Recording, choice: int = 0) -> Iterator[dict[str, Any]]:
    """What a stream says of one choice, in order."""
    for chunk in recording.deltas:
        if isinstance(chunk, dict):
            yield from (one for one in chunk.get("choices") or [] if one.get("index") == choice)


def deltas(recording: Recording, choice: int = 0) -> Iterator[dict[str, Any]]:
    """The deltas of one choice, in order."""
    return (one.get("delta") or {} for one in pieces(recording, choice))


def everything(recordings: Recordings, *prefixes: str) -> list[Said]:
    """Every choice of every 200 answer of these exchanges. Undecided when there is none."""
    found = [one for prefix in prefixes for one in recordings.of(prefix) if one.status == 200]
    need(found, f"no request of {', '.join(prefixes)} was answered")
    return [said(one, choice) for one in found for choice in range(one.request.json.get("n") or 1)]


def expected_keys(server: Server) -> tuple[str, ...]:
    """The keys under which this version sends reasoning."""
    if server.at_least("0.16.0"):
        return ("reasoning",)
    return KEYS if server.at_least("0.11.1") else ("reasoning_content",)


def marked(text: str) -> list[str]:
    """The tags and control tokens in a text."""
    return list(dict.fromkeys([*(tag for tag in TAGS if tag in text), *_CONTROL.findall(text)]))


def appends(server: Server) -> bool:
    """Whether the server's parser leaves reasoning in the content on purpose."""
    return str(server.args.get("reasoning-parser", "")).endswith("append_think")
