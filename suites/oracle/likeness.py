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
#: Fields at a value that asks for nothing: the request is the same without them.
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "truncate_prompt_tokens": (-1,),
    "top_k": (-1, 0),
    "top_p": (1,),
    "min_p": (0,),
    "n": (1,),
    "min_tokens": (0,),
    "length_penalty": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "stop": ([],),
    "stop_token_ids": ([],),
    "logit_bias": ({},),
    "bad_words": ([],),
    "response_format": ({"type": "text"},),
    "ignore_eos": (False,),
    "echo": (False,),
    "include_stop_str_in_output": (False,),
}
#: Fields that narrow a draw: of a request that draws nothing, as its temperature is zero, none counts.
DRAWING = ("top_p", "top_k", "min_p", "seed")


def plain(asked: Mapping[str, Any]) -> dict[str, Any]:
    """A request without what changes only how its answer comes; null and neutral are the same as left out."""
    nothing = DRAWING if asked.get("temperature") == 0 else ()
    return {
        name: value
        for name, value in asked.items()
        if name not in (*OUTER, *nothing) and value is not None and value not in NEUTRAL.get(name, ())
    }


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
