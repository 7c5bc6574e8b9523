"""Blind changes that need not be noticed, each with its reason, and those that should be and are not yet."""

from __future__ import annotations

import re

#: Pattern over `kind  path  change` -> why no client is hurt.
REASONS = {
    r"^GET /v1/models  data\[\]\.(permission|parent|root|owned_by|created)": "nobody acts on it",
    r"  (id|message\.id|response\.id|.*(call_)?id)  (cut|doubled|emptied)$": "any text may be an id",
    r"system_fingerprint": "any text, or none",
    r"created(_at)?  off-by-one$": "a second more or less",
    r"  choices  turned-round$": "choices are told apart by their index",
    r"_details: |_details  (dropped|null)$": "servers may leave the details out",
    r"cached_tokens  off-by-one$": "the cache suite counts it exactly",
    r"(created_cache_tokens|cache_write_tokens|cache_creation_input_tokens)": "vLLM's own, not promised",
    r"_per_turn|tool_output_tokens": "vLLM's own, not promised",
    r"\.bytes  ": "null is allowed, and the token's text is checked",
    r"\.text_offset  ": "streamed offsets are relative to nothing in particular",
    r"\.rank  off-by-one$": "a rank is checked to be one, not which",
    r"^refused  (detail|type)": "the web framework's own envelope",
    r"error\.(message|type|param)  (cut|doubled|emptied|null)$": "words of an error may be any",
    r"error\.code  retyped$": "a code may be a text",
    r"context_management": "an echo of vLLM's own",
    r"message\.usage\.(input|output)_tokens  off-by-one$": "the last event's count is the one that is billed",
    r"  (prompt|choices\[\])?\.?(token_ids|prompt_token_ids|routed_experts|prompt_text)  dropped$": "null",
    r"^(?!.*(usage|choices|message|output|text|tools)  ).*  dropped$": "it was null: left out says the same",
    r"^POST /tokenize  token_strs  turned-round$": "they are compared as a set with the tokens",
    r"^POST /v1/responses.*  (response\.)?"
    r"(tools|reasoning|text|user|instructions|max_tool_calls|top_logprobs)\b"
    r".*  (null|emptied|dropped)$": "an echo that is left out misleads nobody; what is there is compared",
    r"signature  (cut|doubled)$": "any text may be a signature",
}

#: Pattern -> what is missing.
GAPS = {
    r"completions stream  choices\[\]\.(logprobs|prompt_token_ids|token_ids)": (
        "log probabilities of a streamed completion are counted, not compared with those of a whole one"
    ),
    r"^POST /v1/completions  choices\[\]\.token_ids  turned-round$": "ids of two answers at once",
    r"^POST /v1/responses stream  (part|item)\..*(annotations|logprobs|summary)": "only the end is compared",
    r"^POST /v1/responses stream  logprobs": "of a piece",
    r"^POST /v1/responses( stream)?  .*usage\..*(negative)$": "negative details",
    r"reasoning_tokens  off-by-one$": "counted for chat answers only",
    r"content_index  off-by-one$": "there is one part, whatever its number",
    r"response\.text  dropped$": "it was null",
    r"created_at  negative$": "only chat streams are held to the clock",
}


def allowed(mutant: str) -> bool:
    """Whether a reason, or a known gap, covers this change."""
    return any(re.search(pattern, mutant) for pattern in (*REASONS, *GAPS))
