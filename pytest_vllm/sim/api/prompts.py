"""From a request to prompt tokens and output limits, with vLLM's context-length refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.errors import ApiError, Invalid

if TYPE_CHECKING:
    from pytest_vllm.sim.tokens.tokenizer import Tokenizer

Body = dict[str, Any]


def check_sizes(body: Body, limit: int, wanted: int | None, name: str) -> None:
    """Refuse wishes that can't fit whatever the prompt; `wanted` output tokens are asked for by `name`."""
    if (wanted or 0) > limit:
        text = (
            f"{name}={wanted} cannot be greater than max_model_len={limit}. Please request fewer output "
            "tokens."
        )
        raise Invalid(text, name, wanted)
    keep = body.get("truncate_prompt_tokens")
    if keep is not None and keep > limit:
        text = f"truncate_prompt_tokens={keep} cannot be greater than max_model_len = {limit}. "
        raise Invalid(text + "Please request a smaller truncation size.", "truncate_prompt_tokens", keep)


def encode(text: str, body: Body, limit: int, tokens: Tokenizer) -> list[int]:
    """Token ids of a prompt text, cut or refused as the request wants."""
    bound = limit * tokens.longest
    if body.get("truncate_prompt_tokens") is None and len(text) > bound:
        message = (
            f"This model's maximum context length is {limit} tokens. However, your prompt contains "
            f"{len(text)} "
            f"characters (more than {bound} characters, which is the upper bound for {limit} input tokens). "
            "Please reduce the length of the input prompt."
        )
        raise Invalid(message, "input_text", len(text))
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ApiError(
            "TextEncodeInput must be Union[TextInputSequence, Tuple[InputSequence, InputSequence]]"
        ) from None
    ids = tokens.encode(text)
    if len(ids) > limit and body.get("truncate_prompt_tokens") is None:
        ids = ids[: limit + 1]
    return fit(ids, body, limit)


def fit(ids: list[int], body: Body, limit: int) -> list[int]:
    """Token ids after truncation. Raises Invalid when they exceed the context."""
    keep = body.get("truncate_prompt_tokens")
    if keep is not None:
        keep = limit - 1 if keep == -1 else keep
        side = body.get("truncation_side") or "left"
        ids = ([] if not keep else ids[-keep:]) if side == "left" else ids[:keep]
    if len(ids) > limit:
        at_least = "at least " if len(ids) == limit + 1 else ""
        message = (
            f"This model's maximum context length is {limit} tokens. However, your prompt contains {at_least}"
            f"{len(ids)} input tokens, which exceeds this limit even without any output tokens. "
            "Please reduce the length of the input prompt."
        )
        raise Invalid(message, "input_tokens", len(ids))
    return ids


def output_limit(wanted: int | None, prompt: int, limit: int) -> int:
    """Output tokens that a request may get: the rest of the context at most."""
    return min(limit - prompt, limit - prompt if wanted is None else wanted)


def check_room(prompt: int, limit: int) -> None:
    """The engine's own look at the prompt length, made when it takes the request."""
    if prompt == 0:
        raise Invalid("The decoder prompt cannot be empty")
    if prompt >= limit:
        text = (
            f"The decoder prompt (length {prompt}) plus the number of requested output tokens (at least 1) "
            "is longer "
            f"than the maximum model length of {limit}. Make sure that `max_model_len` is no smaller than "
            "the number "
            "of text tokens (prompt + requested output tokens)."
        )
        raise Invalid(text)
