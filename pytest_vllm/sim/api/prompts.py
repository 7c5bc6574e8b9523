"""From a request to prompt tokens and output limits, with vLLM's context-length refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.errors import ApiError, Invalid

if TYPE_CHECKING:
    from pytest_vllm.sim.settings import Settings
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


def encode(text: str, body: Body, settings: Settings, tokens: Tokenizer) -> list[int]:
    """Token ids of a prompt text, cut or refused as the request wants."""
    limit = settings.max_model_len
    bound = limit * tokens.longest
    if body.get("truncate_prompt_tokens") is None and len(text) > bound:
        message = (
            f"This model's maximum context length is {limit} tokens. However, {_asked(body, settings)}"
            f"your prompt contains {len(text)} "
            f"characters (more than {bound} characters, which is the upper bound for {limit} input tokens). "
            f"{_reduce(settings)}"
        )
        raise Invalid(message, "input_text", len(text))
    ids = tokenized(text, tokens)
    most = _room(body, settings)
    if len(ids) > most and body.get("truncate_prompt_tokens") is None:
        ids = ids[: most + 1]
    return fit(ids, body, settings)


def tokenized(text: str, tokens: Tokenizer) -> list[int]:
    """Token ids of a text of any length. Raises ApiError for text that is no Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ApiError(
            "TextEncodeInput must be Union[TextInputSequence, Tuple[InputSequence, InputSequence]]"
        ) from None
    return tokens.encode(text)


def fit(ids: list[int], body: Body, settings: Settings) -> list[int]:
    """Token ids after truncation. Raises Invalid when they exceed the context."""
    limit = settings.max_model_len
    keep = body.get("truncate_prompt_tokens")
    if keep is not None:
        keep = min(limit - 1, _room(body, settings)) if keep == -1 else keep
        side = body.get("truncation_side") or ("right" if settings.pooling else "left")
        ids = ([] if not keep else ids[-keep:]) if side == "left" else ids[:keep]
    most = _room(body, settings)
    if len(ids) > most:
        at_least = "at least " if len(ids) == most + 1 else ""
        total = len(ids) + _wanted(body)
        why = "which exceeds this limit even without any output tokens"
        if settings.version < "0.32.0":
            why = f"for a total of {at_least}{total} tokens"
        message = (
            f"This model's maximum context length is {limit} tokens. However, {_asked(body, settings)}"
            f"your prompt contains {at_least}{len(ids)} input tokens, {why}. {_reduce(settings)}"
        )
        raise Invalid(message, "input_tokens", len(ids))
    return ids


def _room(body: Body, settings: Settings) -> int:
    """How long a prompt may be: before 0.32.0 the output that is asked for has to fit as well."""
    asked = _wanted(body) if settings.version < "0.32.0" else 0
    return settings.max_model_len - asked


def _wanted(body: Body) -> int:
    return body.get("max_completion_tokens") or body.get("max_tokens") or 0


def _asked(body: Body, settings: Settings) -> str:
    return f"you requested {_wanted(body)} output tokens and " if settings.version < "0.32.0" else ""


def _reduce(settings: Settings) -> str:
    more = " or the number of requested output tokens" if settings.version < "0.32.0" else ""
    return f"Please reduce the length of the input prompt{more}."


def output_limit(wanted: int | None, prompt: int, settings: Settings) -> int:
    """Output tokens that a request may get: the rest of the context at most, or what the checkpoint says."""
    rest, own = settings.max_model_len - prompt, settings.sampling_defaults.get("max_new_tokens")
    told = wanted if wanted is not None else own
    return rest if told is None else min(rest, told)


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
