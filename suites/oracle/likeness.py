"""Requests that ask a model for the same over different routes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .answers import CHAT, MESSAGES, RESPONSES

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Route -> how it names the instructions, the conversation and the limit of tokens.
NAMES = {
    RESPONSES: ("instructions", "input", "max_output_tokens"),
    MESSAGES: ("system", "messages", "max_tokens"),
}
#: Fields that change how an answer comes, and not what it says.
OUTER = (
    "stream", "stream_options", "logprobs", "top_logprobs", "user", "request_id", "metadata", "priority",
    "return_token_ids", "return_tokens_as_token_ids", "store", "service_tier", "include",
)  # fmt: skip


def plain(asked: Mapping[str, Any]) -> dict[str, Any]:
    """A request without what changes only how its answer comes; null is the same as left out."""
    return {name: value for name, value in asked.items() if name not in OUTER and value is not None}


def as_chat(path: str, asked: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The chat request that asks for the same as plain words over another route; any other as it is."""
    kept = plain(asked)
    if path not in NAMES or not set(kept) <= {"model", "temperature", *NAMES[path]}:
        return path, kept
    above, said, limit = (kept.get(name) for name in NAMES[path])
    turns = [{"role": "user", "content": said}] if isinstance(said, str) else said
    if not isinstance(above or "", str) or not isinstance(turns, list) or limit is None or not _worded(turns):
        return path, kept
    system = [{"role": "system", "content": above}] if above else []
    chat = {"temperature": kept.get("temperature"), "messages": [*system, *turns], "max_tokens": limit}
    return CHAT, chat | ({"model": kept["model"]} if "model" in kept else {})


def _worded(turns: list[Any]) -> bool:
    """Whether a conversation is of words alone."""
    return all(
        isinstance(one, dict) and set(one) == {"role", "content"} and isinstance(one["content"], str)
        for one in turns
    )
